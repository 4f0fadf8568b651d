"""`railgun apply` of definitions with paths and units, to a server."""

from pathlib import Path

import pytest

from railgun.cli.main import main
from tests.frontend.serving import server
from tests.paths.test_http import DEFINITIONS

MORE = '[[metrics]]\nsql = "SELECT count(card) AS cards FROM s OVER INFINITE"\n'
FIELD = 'card = { type = "string", from = "payments[0].card" }\n'


def test_apply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "d.toml"

    def apply(definitions: str) -> tuple[int, str]:
        file.write_text(definitions)
        code = main(["apply", str(file), "--url", str(served.client.base_url).rstrip("/")])
        said = capsys.readouterr()
        return code, said.out + said.err

    with server(tmp_path / "data") as served:
        assert apply(DEFINITIONS)[0] == 0
        code, said = apply(DEFINITIONS)
        assert (code, "stream s" in said) == (0, False)
        grown = DEFINITIONS.replace("[[metrics]]", FIELD + "[[metrics]]", 1) + MORE
        code, said = apply(grown)
        assert code == 0, said
        assert "stream s, fields" in said
        fields = served.client.get("/v1/streams/s").json()["fields"]
        assert fields["card"] == {"type": "string", "from": "payments[0].card"}
        assert fields["id"] == {"type": "string", "from": "header.id"}
        code, said = apply(grown.replace("payments[0].card", "card.number"))
        assert code == 1
        assert (
            "field card is string from payments[0].card, the definition says string from card.number" in said
        )
        code, said = apply(grown.replace('unit = "s"', 'unit = "ms"'))
        assert code == 1
        assert "the definition says timestamp from header['created-at'] unit ms" in said
        changes = served.client.get("/v1/log").json()["changes"]
        added = "fields added: card string from payments[0].card"
        assert any(added in each["what"] for each in changes)
