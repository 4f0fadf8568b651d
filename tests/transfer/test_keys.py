"""Signatures: each part of a request counts, and a manifest is that of its snapshot alone."""

from railgun.transfer.keys import is_signature, manifest_signature, new_key, request_signature


def test_every_part_of_a_request_is_signed() -> None:
    key = new_key()
    signed = request_signature(key, "GET", "/v1/a", "bytes=1-", "f")
    others = [
        request_signature(new_key(), "GET", "/v1/a", "bytes=1-", "f"),
        request_signature(key, "DELETE", "/v1/a", "bytes=1-", "f"),
        request_signature(key, "GET", "/v1/b", "bytes=1-", "f"),
        request_signature(key, "GET", "/v1/a", "bytes=2-", "f"),
        request_signature(key, "GET", "/v1/a", "bytes=1-", "g"),
    ]
    assert is_signature(request_signature(key, "GET", "/v1/a", "bytes=1-", "f"), signed)
    assert not any(is_signature(each, signed) for each in [*others, "", "ä"])


def test_a_manifest_is_signed_with_the_name_of_its_snapshot() -> None:
    key = new_key()
    signed = manifest_signature(key, "ab", b"{}")
    assert not is_signature(manifest_signature(key, "ac", b"{}"), signed)
    assert not is_signature(manifest_signature(key, "ab", b"{ }"), signed)
    assert not is_signature(request_signature(key, "manifest", "ab", "", ""), signed)
