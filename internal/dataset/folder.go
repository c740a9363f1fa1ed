// Package dataset reads sets of images of known classes and measures how many of
// them a classifier knows.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// Set is a set of images of known classes. It is safe for concurrent use.
type Set interface {
	Len() int
	Class(i int) int
	Name(i int) string // its file, or its number in one
	// Image reads an image that p is to take. The error names its file.
	Image(ctx context.Context, i int, p vision.Preprocessing) (image.Image, error)
}

// Images lists the images in a folder and the folders below it, by the endings
// of their names: .jpg, .jpeg, .png, .gif, .bmp, .webp, and those of pictures that cannot be
// read, such as .tif and .heic, so that nobody misses them. Names that begin with a dot are
// passed over. Links to folders are followed directly in the folder, and are errors
// below, where they may lead in circles. Errors name the folder.
func Images(ctx context.Context, dir string) ([]string, error) { return imagesIn(ctx, dir, true) }

func imagesIn(ctx context.Context, dir string, links bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, files.Name(dir, err)
	}
	var images []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isFolder(path, e):
			if !links && !e.IsDir() {
				return nil, files.Name(path, errors.New("a link to a folder, followed only directly in the given folder"))
			}
			below, err := imagesIn(ctx, path, false)
			if err != nil {
				return nil, err
			}
			images = append(images, below...)
		default:
			switch strings.ToLower(filepath.Ext(e.Name())) {
			case ".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2":
				images = append(images, path)
			}
		}
	}
	return images, nil
}

// isFolder reports whether an entry is a folder or a link to one.
func isFolder(path string, e os.DirEntry) bool {
	if e.Type()&os.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// folder is a data set of the form DIR/CLASS/IMAGE.
type folder struct {
	files   []string
	classes []int
}

func (f *folder) Len() int          { return len(f.files) }
func (f *folder) Class(i int) int   { return f.classes[i] }
func (f *folder) Name(i int) string { return f.files[i] }
func (f *folder) Image(ctx context.Context, i int, p vision.Preprocessing) (image.Image, error) {
	return p.DecodeFile(ctx, f.files[i])
}

// OpenFolder lists the images of a folder. Every folder in it, or link to one, must be named
// after one of the labels; hidden ones are passed over.
func OpenFolder(ctx context.Context, dir string, labels []string) (Set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, files.Name(dir, err)
	}
	f := &folder{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || !isFolder(path, e) {
			continue
		}
		class := slices.Index(labels, e.Name())
		if class < 0 {
			return nil, files.Name(path, fmt.Errorf("the folder is not named after a class of the model, which has %s", text.Escape(strings.Join(labels, ", "))))
		}
		images, err := imagesIn(ctx, path, false)
		if err != nil {
			return nil, err
		}
		f.files = append(f.files, images...)
		f.classes = append(f.classes, slices.Repeat([]int{class}, len(images))...)
	}
	if len(f.files) == 0 {
		return nil, files.Name(dir, errors.New("no images; the folder must hold CLASS/*.jpg, *.jpeg, *.png, *.gif, *.bmp or *.webp"))
	}
	return f, nil
}
