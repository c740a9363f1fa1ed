package recognize

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"
)

// made returns what an encoder writes.
func made(t testing.TB, write func(w io.Writer) error) string {
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

func zipped(t testing.TB, names ...string) string {
	return made(t, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, name := range names {
			f, err := z.Create(name)
			if err == nil {
				_, err = io.WriteString(f, "content")
			}
			if err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// examples returns files by what Head says of them: a part of its error, or the name
// of a format.
func examples(t testing.TB) map[string][]string {
	img := image.NewGray(image.Rect(0, 0, 2, 2))
	return map[string][]string{
		"=.bcnn": {
			"\x40\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}",
			"\x12\x01\x00\x00\x00\x00\x00\x00{", // as long as the mark of MXNet
		},
		"=TensorFlow Lite": {"\x1c\x00\x00\x00TFL3\x00\x00\x12\x00"},
		"=ONNX": {
			"\x08\x06\x12\x07pytorch\x1a\x031.7",
			"\x08\x08\x12\x0cbackend-test:\x82\x01",  // the graph goes on
			"\x08\x01\x12\x05caffe:\x03abc\x42\x01x", // the oldest version
			"\x08\x07:" + "\x80\x80\x04" + strings.Repeat("\xff", HeadBytes),
			"\x08\x07\x28\x80", // in the middle of a number
			"\x08",
		},
		"a Keras model (HDF5)": {"\x89HDF\r\n\x1a\n\x00\x00"},
		"a Keras 3 model":      {zipped(t, "metadata.json", "config.json", "model.weights.h5")},
		"a PyTorch file":       {zipped(t, "model/data.pkl", "model/version"), zipped(t, "archive/x.bin", "archive/byteorder")},
		"a NumPy archive":      {zipped(t, "arr_0.npy")},
		"a zip archive":        {zipped(t, "data.pkl"), zipped(t, "readme"), "PK\x03\x04", "PK\x03\x04" + strings.Repeat("\xff", 40)},
		"a pickle": {
			"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", // the old format of torch.save
			"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}",
		},
		"BMXNet or MXNet weights":          {"\x12\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
		"=BMXNet":                          {`{"nodes":[{"op":"null"`, "{\n  \"nodes\": ["},
		"=Darknet":                         {"[net]\n", "[network]", "\n # of\r\n;\r\n [ ne t ]\r\nwidth=3"},
		"Darknet weights, not a":           {"\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04"},
		"=OpenVINO":                        {`<net name="x" version="11">`, "<?xml version=\"1.0\"?>\n<!-- made by hand -->\n<net\tversion=\"4\">"},
		"XML, but not a graph of OpenVINO": {`<?xml version="1.0"?><model>`, `<?xml version="1.0"?><network>`, "<?xml"},
		"a TensorFlow SavedModel":          {"\x08\x01\x12\xc7\x36\x0a\x5e"},
		"a NumPy array":                    {"\x93NUMPY\x01\x00v"},
		"a JPEG image":                     {made(t, func(w io.Writer) error { return jpeg.Encode(w, img, nil) })},
		"a PNG image":                      {made(t, func(w io.Writer) error { return png.Encode(w, img) })},
		"a GIF image": {made(t, func(w io.Writer) error {
			return gif.Encode(w, image.NewPaletted(img.Rect, color.Palette{color.Black, color.White}), nil)
		})},
		"a BMP image":  {made(t, func(w io.Writer) error { return bmp.Encode(w, img) })},
		"a WebP image": {"RIFF\x24\x00\x00\x00WEBPVP8 "},
		"gzip": {made(t, func(w io.Writer) error {
			z := gzip.NewWriter(w)
			_, err := io.WriteString(z, "content")
			return cmp.Or(err, z.Close())
		})},
		"bzip2": {"BZh91AY&SY"},
		"xz":    {"\xfd7zXZ\x00\x00\x04"},
		"zstd":  {"\x28\xb5\x2f\xfd\x04\x58"},
		"a tar archive": {made(t, func(w io.Writer) error {
			z := tar.NewWriter(w)
			err := z.WriteHeader(&tar.Header{Name: "model.onnx", Mode: 0o644})
			return cmp.Or(err, z.Close())
		})},
		"Git LFS":           {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"},
		"a web page":        {"\n<!DOCTYPE html>\n<html>", "<HTML><head>"},
		"plain text, not a": {"hello\n", "<network>", "<net", ":)", "results\tof all", "[1]", "[Network]\n", "a\n[net]\n", "[net] x\n", strings.Repeat("ä", HeadBytes)[:HeadBytes-1] + "\xc3", "\xef\xbb\xbfa,b\r\n"},
		`JSON, but not a graph of MXNet: it has no "nodes", not a`: {"{}", "\n {\"layers\": []}"},
		"an empty file":           {""},
		"not a .bcnn, ONNX, Tens": {"\x00\x00\x00\x00", "\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00", "\x0a\x02ab", "\xff\xff\xff", "a\x00b", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x80\x09}"},
	}
}

func TestHead(t *testing.T) {
	for want, list := range examples(t) {
		for _, content := range list {
			format, err := Head([]byte(content)[:min(len(content), HeadBytes)])
			if name, ok := strings.CutPrefix(want, "="); ok {
				require.NoError(t, err, "%q", content)
				require.Equal(t, name, format.String())
				continue
			}
			require.ErrorContains(t, err, want, "%q", content)
			require.Zero(t, format)
		}
	}
	require.Equal(t, "Format(0)", Format(0).String())
	require.Equal(t, "BinCNN", BinCNN.String())
}

func TestPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	format, err := Path(write("misnamed.bcnn", "\x08\x06"+strings.Repeat("\x12\x01x", HeadBytes)))
	require.NoError(t, err)
	require.Equal(t, ONNX, format)
	write("wgt/"+BinCNNFile, "")
	format, err = Path(filepath.Join(dir, "wgt"))
	require.NoError(t, err)
	require.Equal(t, BinCNN, format)

	write("saved/saved_model.pb", "")
	for path, want := range map[string]string{
		write("a.bcnn", ""):                  ": an empty file",
		write("b.onnx", "\x89HDF\r\n\x1a\n"): ": a Keras model (HDF5), not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; ",
		filepath.Join(dir, "saved"):          ": a TensorFlow SavedModel, not a",
		dir:                                  ": a folder without a model",
	} {
		_, err = Path(path)
		require.ErrorContains(t, err, path+want)
	}
	_, err = Path(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever comes, the answer is a format or an error, and what lies behind a mark
// that was found does not change it.
func FuzzHead(f *testing.F) {
	for _, list := range examples(f) {
		for _, content := range list {
			f.Add([]byte(content))
		}
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		head = head[:min(len(head), HeadBytes)]
		before := bytes.Clone(head)
		format, err := Head(head)
		require.Equal(t, before, head)
		require.Equal(t, err == nil, slices.Contains([]Format{ModelFile, ONNX, TFLite, BMXNet, Darknet, OpenVINO}, format))
		if format == ModelFile && len(head) < HeadBytes {
			again, err := Head(append(head, 0))
			require.NoError(t, err)
			require.Equal(t, format, again)
		}
	})
}
