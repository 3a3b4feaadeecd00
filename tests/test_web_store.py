"""Images of files: every path is found, by the model's look-up and by the gateware's."""

import pytest
from streams import make_rng, seeds
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.http import Object
from trebuchet.models.http.folder import media_type, objects_of
from trebuchet.models.http.image import Image

BASE = 0x3000


def random_objects(rng, count):
    objects = {}
    for k in range(count):
        path = b"/" + bytes(rng.choice(b"abcdefgh/._-") for _ in range(rng.randint(0, 95)))
        objects[path] = Object(rng.randbytes(rng.choice([0, 1, 511, 1400])), b"text/plain", k)
    return objects


@seeds(3)
def test_an_image_has_what_was_put_in(seed):
    objects = random_objects(make_rng(seed, "objects"), 300)
    objects[b"/large"] = Object(bytes(1 << 20), b"text/plain", 1 << 60)
    image = Image(objects, BASE)
    for path, found in objects.items():
        entry = image.find(path)
        for close, length in ((False, "found_header"), (True, "close_header")):
            at = entry["close" if close else "found"] - BASE
            response = found.found(close)
            assert image.bytes[at : at + entry[length]] == response.header
            if not close or entry["whole_close"]:
                at += entry[length]
                assert image.bytes[at : at + entry["length"]] == response.content
                assert close or (at + BASE) % 512 == 0
        same = image.bytes[entry["same"] - BASE :]
        assert same.startswith(found.not_modified().header)
        assert same[256:].startswith(found.not_modified(close=True).header)
        assert (entry["length"], entry["tag"]) == (len(found.content), found.tag)
        assert image.find(path + b"x") is None or path + b"x" in objects
    assert image.find(b"/large")["whole_close"] == 0


def test_what_does_not_fit_is_refused():
    one = {b"/": Object(b"x" * 5000, b"text/plain", 1)}
    with pytest.raises(ValueError, match="multiple of 4096, not 100"):
        Image(one, 100)
    with pytest.raises(ValueError, match="need more than the 4096 bytes"):
        Image(one, 4096, 4096)
    many = {b"/%d" % k: Object(b"", b"text/plain", k) for k in range(9)}
    with pytest.raises(ValueError, match="More than 8 of 9 paths fall into one of 1 buckets"):
        Image(many, 0, buckets=1)
    long = {b"/" + b"x" * 96: one[b"/"]}
    assert Image(long).left_out == set(long)


def test_files_of_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text("top")
    (tmp_path / "sub" / "index.html").write_text("sub")
    (tmp_path / "sub" / "a.css").write_text("")
    objects = objects_of(tmp_path)
    assert set(objects) == {b"/", b"/index.html", b"/sub/", b"/sub/index.html", b"/sub/a.css"}
    assert objects[b"/"] is objects[b"/index.html"]
    assert objects[b"/sub/a.css"].media_type == b"text/css; charset=utf-8"
    assert media_type("x.tar.gz") == media_type("x") == "application/octet-stream"
    with pytest.raises(TrebuchetError, match="is no folder"):
        objects_of(tmp_path / "none")
