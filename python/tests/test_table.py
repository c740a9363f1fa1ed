"""Tables of reports and profiles."""

import pytest

import bitcnn


def test_report(digits: bitcnn.Model) -> None:
    report = digits.report()
    assert [row["layer"] for row in report] == ["conv1", "conv2", "dense1", "dense2"]
    assert report["precision"] == ["8-bit", "binary", "binary", "binary"]
    assert report.totals["macs"] == sum(report["macs"])  # type: ignore[arg-type]
    assert len(report) == 4
    assert report[-1]["layer"] == "dense2"
    assert [row["layer"] for row in report[1:3]] == ["conv2", "dense1"]
    lines = repr(report).splitlines()
    assert lines[0] == "digits: input 28×28×1 uint8; multiplications: 88.5 % binary, 11.5 % 8-bit"
    assert lines[1].split()[:3] == ["layer", "kind", "precision"]
    assert len(lines) == 7
    with pytest.raises(KeyError, match="no column 'bytes'; the table has layer"):
        report["bytes"]
    with pytest.raises(IndexError):
        report[4]


def test_profile(digits: bitcnn.Model) -> None:
    profile = digits.profile(runs=5)
    assert profile["step"] == digits.steps()["step"]
    for row in profile:
        assert 0 < row["min_us"] <= row["median_us"]  # type: ignore[operator]
        assert row["why"]
    assert abs(sum(profile["percent"]) - 100) < 1e-6  # type: ignore[arg-type]
    for wrong, text in [(0, "0 runs"), (1 << 40, "runs, want")]:
        with pytest.raises(ValueError, match=text):
            digits.profile(runs=wrong)
    with pytest.raises(ValueError, match="got 2 inputs, want 1"):
        digits.profile(1, 2)  # type: ignore[arg-type]


def test_html() -> None:
    table = bitcnn.Table("<a>", ["x<y", "z"], [["&", 1.234], ["b", True]], {"z": 2})
    assert table._repr_html_() == (
        '<table style="white-space: nowrap"><caption style="caption-side: top; text-align: left">&lt;a&gt;</caption>'
        "<thead><tr><th>x&lt;y</th><th>z</th></tr></thead><tbody>"
        "<tr><td>&amp;</td><td>1.23</td></tr><tr><td>b</td><td>yes</td></tr></tbody>"
        "<tfoot><tr><th></th><th>2</th></tr></tfoot></table>"
    )


def test_pandas(digits: bitcnn.Model) -> None:
    pytest.importorskip("pandas")
    frame = digits.report().to_pandas()
    assert list(frame["layer"]) == ["conv1", "conv2", "dense1", "dense2"]
    assert frame["macs"].sum() == digits.report().totals["macs"]


def test_plot(digits: bitcnn.Model) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    profile = digits.profile(runs=2)
    ax = profile.plot()
    assert [bar.get_width() for bar in ax.patches] == profile["median_us"]  # type: ignore[attr-defined]
    assert ax.get_xlabel() == "median_us"
    assert profile.plot("percent", ax).get_xlabel() == "percent"
    with pytest.raises(ValueError, match="the column 'why' has no numbers"):
        profile.plot("why")


def test_plot_of_report(digits: bitcnn.Model) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    ax = digits.report().plot()
    assert ax.get_xlabel() == "stored_bytes"
    legend = ax.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["8-bit", "binary"]
    rows = [["a very long name of a layer " * 2, "2-bit", 3], ["b", "float32", 2], ["c", "2-bit", 1]]
    ax = bitcnn.Table("title", ["layer", "precision", "n"], rows, plotted="n", coloured="precision").plot()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["2-bit", "float32"]  # type: ignore[union-attr]
    assert [bar.get_width() for bar in ax.patches] == [3, 1, 2]  # type: ignore[attr-defined]
    # Nothing is cut off.
    figure = ax.figure
    figure.canvas.draw()
    for text in [*ax.get_yticklabels(), ax.xaxis.label, ax.title]:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
