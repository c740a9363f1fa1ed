package onnx

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Hugging Face's cache keeps the files of a repository by their hashes, and the folder of each revision
// has links to them:
//
//	REPOSITORY/blobs/HASH
//	REPOSITORY/snapshots/REVISION/model.onnx -> ../../blobs/HASH
//
// See https://huggingface.co/docs/huggingface_hub/guides/manage-cache.

// openCached opens a file beside a model of such a cache. Of the links that lead out of the model's
// folder it follows only those to a hash among the blobs of the same repository, which are what was
// downloaded with the model: no other file can be read in this way. ok is false for other links.
func openCached(dir string, root *os.Root, name string) (f *files.File, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, false
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, false
	}
	target, err := root.Readlink(name) // whose folder lies within the root
	if err != nil || filepath.IsAbs(target) || len(target) > maxTarget {
		return nil, false
	}
	for folder := filepath.Dir(name); folder != "."; folder = filepath.Dir(folder) {
		if info, err := root.Lstat(folder); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return nil, false
		}
	}
	at := filepath.Join(dir, filepath.Dir(name), target)
	blobs, hash := filepath.Dir(at), filepath.Base(at)
	below, err := filepath.Rel(filepath.Join(filepath.Dir(blobs), "snapshots"), dir)
	if err != nil || filepath.Base(blobs) != "blobs" || !isHash(hash) || !filepath.IsLocal(below) || below == "." {
		return nil, false
	}
	if info, err := os.Lstat(blobs); err != nil || !info.IsDir() {
		return nil, false
	}
	of, err := os.OpenRoot(blobs)
	if err != nil {
		return nil, false
	}
	defer of.Close() // what it has opened stays open
	if info, err := of.Lstat(hash); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err = files.OpenIn(of, hash)
	return f, err == nil
}

// maxTarget is the longest target of a link that is looked at.
const maxTarget = 4096

// isHash reports whether a name is a SHA-1 or a SHA-256 in hexadecimal digits.
func isHash(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
}
