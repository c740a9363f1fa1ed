// Package recognize tells what a file is by what is in it, so that names do not
// matter, and says of a file that is no model what it is and how to come from there
// to a model.
package recognize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Format is a format of models that the module reads.
type Format int

const (
	ModelFile Format = iota + 1 // .bcnn, or another safetensors file
	ONNX
	TFLite   // TensorFlow Lite
	BinCNN   // the folder of weights published with BinCNN
	BMXNet   // the graph of a network of BMXNet or MXNet (symbol.json)
	Darknet  // the description of a network of Darknet (.cfg)
	OpenVINO // the graph of a network of OpenVINO (IR, .xml)
)

func (f Format) String() string {
	switch f {
	case ModelFile:
		return ".bcnn"
	case ONNX:
		return "ONNX"
	case TFLite:
		return "TensorFlow Lite"
	case BinCNN:
		return "BinCNN"
	case BMXNet:
		return "BMXNet"
	case Darknet:
		return "Darknet"
	case OpenVINO:
		return "OpenVINO"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// HeadBytes is the number of bytes at the beginning of a file that Head looks at.
const HeadBytes = 4096

// BinCNNFile is a file that is in every folder of weights of BinCNN.
const BinCNNFile = "pkwConv1.bin"

// Path returns the format of the model in a file or a folder. Errors name it.
func Path(path string) (Format, error) {
	f, err := files.Open(path)
	if errors.Is(err, syscall.EISDIR) {
		format, err := Folder(func(name string) bool {
			_, err := os.Stat(filepath.Join(path, name))
			return err == nil
		})
		return format, files.Name(path, err)
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	format, err := Reader(f)
	return format, files.Name(path, err)
}

// Reader returns the format of a file that is read from its beginning.
func Reader(r io.Reader) (Format, error) {
	head := make([]byte, HeadBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, err
	}
	return Head(head[:n])
}

// Folder returns the format of the model in a folder, of which has tells whether it
// holds a file.
func Folder(has func(name string) bool) (Format, error) {
	switch {
	case has(BinCNNFile):
		return BinCNN, nil
	case has("saved_model.pb"):
		return 0, no(savedModel)
	}
	return 0, errors.New("a folder without a model: want a .bcnn, ONNX or TensorFlow Lite file, the NAME-symbol.json of BMXNet, the NAME.cfg of Darknet, the NAME.xml of OpenVINO, or the folder of weights of BinCNN")
}

// Head returns the format of a file that begins with head: all of it, or HeadBytes.
// ONNX has no mark of its own: whether a file really is one shows when it is read.
func Head(head []byte) (Format, error) {
	if len(head) == 0 {
		return 0, errors.New("an empty file")
	}
	if isSafetensors(head) {
		return ModelFile, nil
	}
	if at(4, "TFL3")(head) {
		return TFLite, nil
	}
	if isSymbol(head) {
		return BMXNet, nil
	}
	if isDarknet(head) {
		return Darknet, nil
	}
	root, isXML := rootElement(head)
	if isXML && root == "net" {
		return OpenVINO, nil
	}
	for _, k := range kinds {
		if k.is(head) {
			return 0, no(k.about)
		}
	}
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); isText(head) && bytes.HasPrefix(trimmed, []byte("{")) {
		return 0, no(about{`JSON, but not a graph of MXNet: it has no "nodes"`, ""})
	}
	if isXML && isText(head) {
		return 0, no(about{"XML, but not a graph of OpenVINO: it does not begin with <net>", ""})
	}
	if isText(head) { // before ONNX, of which it may have all the marks
		return 0, no(about{"plain text", ""})
	}
	if mayBeONNX(head) {
		return ONNX, nil
	}
	return 0, errors.New("not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file, nor of any other known format")
}

// known are the formats of files, as errors list them.
const known = ".bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO"

// about says what a file is, and how to come from there to a model.
type about struct{ what, way string }

func no(a about) error {
	if a.way == "" {
		return fmt.Errorf("%s, not a %s file", a.what, known)
	}
	return fmt.Errorf("%s, not a %s file; %s", a.what, known, a.way)
}

const (
	unpack = "unpack it first"
	wanted = "a model is expected here"
	torch  = "in PyTorch, torch.onnx.export writes the network with its weights as ONNX"
)

var (
	savedModel = about{"a TensorFlow SavedModel", "'python -m tf2onnx.convert --saved-model FOLDER --output model.onnx' converts it"}
	keras      = about{"a Keras model (HDF5)", "'python -m tf2onnx.convert --keras FILE --output model.onnx' converts it"}
	kerasZip   = about{"a Keras 3 model", "in Keras, model.export(\"model.onnx\", format=\"onnx\") converts it"}
	torchZip   = about{"a PyTorch file", torch}
)

// kinds are files that are no models for this module, the surest marks first.
var kinds = []struct {
	is func(head []byte) bool
	about
}{
	{at(0, "\x89HDF\r\n\x1a\n"), keras},
	{zipOf(isKeras), kerasZip},
	{zipOf(isTorch), torchZip},
	{zipOf(isNumPy), about{"a NumPy archive (.npz)", "it holds tensors, but no network"}},
	{at(0, "PK\x03\x04"), about{"a zip archive", unpack}},
	{isPickle, about{"a pickle, as PyTorch and others write them", torch}},
	{at(0, "\x12\x01\x00\x00\x00\x00\x00\x00"), about{"BMXNet or MXNet weights (.params)", "name the graph that they belong to: NAME-symbol.json"}},
	{isDarknetWeights, about{"Darknet weights", "name the description that they belong to: NAME.cfg"}},
	{isSavedModel, savedModel},
	{at(0, "\x93NUMPY"), about{"a NumPy array (.npy)", "it holds a tensor, but no network"}},
	{at(0, "\xff\xd8\xff"), about{"a JPEG image", wanted}},
	{at(0, "\x89PNG\r\n\x1a\n"), about{"a PNG image", wanted}},
	{at(0, "GIF8"), about{"a GIF image", wanted}},
	{isBMP, about{"a BMP image", wanted}},
	{isWebP, about{"a WebP image", wanted}},
	{at(0, "\x1f\x8b"), about{"a file compressed with gzip", unpack}},
	{at(0, "BZh"), about{"a file compressed with bzip2", unpack}},
	{at(0, "\xfd7zXZ\x00"), about{"a file compressed with xz", unpack}},
	{at(0, "\x28\xb5\x2f\xfd"), about{"a file compressed with zstd", unpack}},
	{at(257, "ustar"), about{"a tar archive", unpack}},
	{at(0, "version https://git-lfs"), about{"a Git LFS pointer", "'git lfs pull' gets the file"}},
	{isHTML, about{"a web page (HTML)", "download the file itself"}},
}

func at(offset int, mark string) func([]byte) bool {
	return func(head []byte) bool {
		return len(head) >= offset && bytes.HasPrefix(head[offset:], []byte(mark))
	}
}

// isSafetensors reports whether a file begins with the length of a JSON object and
// the object.
func isSafetensors(head []byte) bool {
	const most = 100 << 20 // for the safetensors library
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) <= most
}

// zipOf returns a function that reports whether a file is a zip archive with a
// member, among those at its beginning, of which is says that it shows the kind.
func zipOf(is func(name string) bool) func([]byte) bool {
	const header, lengthAt = 30, 26
	return func(head []byte) bool {
		if !at(0, "PK\x03\x04")(head) {
			return false
		}
		for rest := head; ; {
			i := bytes.Index(rest, []byte("PK\x03\x04"))
			if i < 0 || len(rest)-i < header {
				return false
			}
			rest = rest[i:]
			n := int(binary.LittleEndian.Uint16(rest[lengthAt:]))
			if n <= len(rest)-header && is(string(rest[header:header+n])) {
				return true
			}
			rest = rest[header:]
		}
	}
}

func isKeras(name string) bool { return name == "config.json" || name == "model.weights.h5" }

func isTorch(name string) bool {
	_, inner, ok := strings.Cut(name, "/") // all is in a folder
	switch inner {
	case "data.pkl", "constants.pkl", "byteorder", ".format_version":
		return ok
	}
	return false
}

func isNumPy(name string) bool { return strings.HasSuffix(name, ".npy") }

// isPickle reports whether a file is a pickle of protocol 2 to 5, which begins with
// its number and, here, with an opcode that those of a state, a model or a number
// begin with.
func isPickle(head []byte) bool {
	const proto = 0x80
	return len(head) > 2 && head[0] == proto && 2 <= head[1] && head[1] <= 5 &&
		bytes.IndexByte([]byte("\x8a\x95}]c(K"), head[2]) >= 0
}

// isSymbol reports whether a file is JSON as MXNet writes networks.
func isSymbol(head []byte) bool {
	rest := bytes.TrimLeft(head, " \t\r\n")
	if !bytes.HasPrefix(rest, []byte("{")) {
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t\r\n"), []byte(`"nodes"`))
}

// isDarknet reports whether a file begins, behind comments, with the section of Darknet's
// descriptions that comes first. White space means nothing there.
func isDarknet(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}
			return r
		}, line)
		if len(line) > 0 && line[0] != '#' && line[0] != ';' {
			return string(line) == "[net]" || string(line) == "[network]"
		}
	}
	return false
}

// isDarknetWeights reports whether a file begins with version 0.1 or 0.2, and one of the
// revisions that Darknet has had.
func isDarknetWeights(head []byte) bool {
	const header, revisions = 16, 10
	return len(head) >= header && (at(0, "\x00\x00\x00\x00\x01\x00\x00\x00")(head) || at(0, "\x00\x00\x00\x00\x02\x00\x00\x00")(head)) &&
		binary.LittleEndian.Uint32(head[8:]) < revisions
}

// rootElement returns the name of the first element of a file that begins as XML does: with it, or
// with a declaration or a comment in front of it. The name is empty where head does not have it.
func rootElement(head []byte) (name string, isXML bool) {
	for rest := head; ; isXML = true {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(rest, []byte("<?xml")):
			end = "?>"
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(rest, []byte("<net")):
			after := rest[len("<net"):]
			if len(after) > 0 && bytes.IndexByte([]byte(" \t\r\n/>"), after[0]) >= 0 {
				return "net", true
			}
			return "", isXML
		default:
			return "", isXML
		}
		var found bool
		if _, rest, found = bytes.Cut(rest, []byte(end)); !found {
			return "", true
		}
	}
}

// isSavedModel reports whether a protocol buffer begins with version 1 and a message
// that begins with one. As ONNX, version 1 is followed by the name of a producer.
func isSavedModel(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte{1<<3 | varint, 1, 2<<3 | delimited})
	if !ok {
		return false
	}
	_, n := binary.Uvarint(rest)
	return n > 0 && len(rest) > n && rest[n] == 1<<3|delimited
}

func isBMP(head []byte) bool {
	return at(0, "BM")(head) && at(6, "\x00\x00\x00\x00")(head)
}

func isWebP(head []byte) bool { return at(0, "RIFF")(head) && at(8, "WEBP")(head) }

func isHTML(head []byte) bool {
	start := bytes.ToLower(bytes.TrimLeft(head, " \t\r\n"))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// isText reports whether there are only printable characters and space in UTF-8.
func isText(head []byte) bool {
	if len(head) == HeadBytes { // the last character may be cut
		for i := 0; i < utf8.UTFMax-1 && !utf8.Valid(head); i++ {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) {
		return false
	}
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
			return false
		}
	}
	return true
}

// Wire types of protocol buffers.
const varint, delimited = 0, 2

// modelFields are the fields of ModelProto with their wire types.
var modelFields = map[uint64]uint64{
	1: varint, 2: delimited, 3: delimited, 4: delimited, 5: varint, 6: delimited,
	7: delimited, 8: delimited, 14: delimited, 20: delimited, 25: delimited, 26: delimited,
}

// mayBeONNX goes through the fields at the beginning of a file and reports whether
// all of them are those of a model, down to one that goes on behind head.
func mayBeONNX(head []byte) bool {
	for len(head) > 0 {
		tag, n := binary.Uvarint(head)
		if wire, known := modelFields[tag>>3]; n < 1 || !known || wire != tag&7 {
			return false
		}
		value, m := binary.Uvarint(head[n:])
		if m < 1 {
			return m == 0 // it is cut off
		}
		head = head[n+m:]
		if tag&7 == delimited {
			head = head[min(value, uint64(len(head))):]
		}
	}
	return true
}
