"""Fetches over TLS: the donor's certificate is verified."""

import ssl
import time
from pathlib import Path

from railgun.access.certificate_files import CertificateFiles, read_certificates
from tests.certificates import Authority
from tests.transfer.made_up import MadeUpDonor, content, donors, fetch_of, order


def test_a_donor_is_verified(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    pair = authority.pair()
    files = CertificateFiles(str(pair.certificate), str(pair.key))
    context = read_certificates(files, time.time()).context
    with donors(MadeUpDonor(tmp_path / "n0", content(), tls=context)) as addresses:
        trusted = ssl.create_default_context(cafile=authority.file)
        assert fetch_of(order(tmp_path / "task", "n0"), addresses, tls=trusted).run().error == ""
        untrusted = ssl.create_default_context(cafile=stranger.file)
        refused = fetch_of(order(tmp_path / "other_task", "n0"), addresses, tls=untrusted).run()
        assert "CERTIFICATE_VERIFY_FAILED" in refused.error
