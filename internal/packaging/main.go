// Command packaging makes what scripts/release publishes besides archives: packages for
// Debian and for RPM, an OCI image, a Homebrew formula and bills of materials.
//
//	packaging linux FOLDER ARCHITECTURE OUT       bcnn_*.deb and bcnn-*.rpm in the folder OUT
//	packaging image OUT.tar ARCHITECTURE=FOLDER...
//	packaging sbom FOLDER FILE OUT.json           CycloneDX, of the command FILE in FOLDER
//	packaging formula OUT                         OUT/bcnn.rb, for the archives that are in OUT
//
// A FOLDER is what is in an archive: the command, its licences, man and completions.
// $VERSION is the version, such as v0.1.0, and $SOURCE_DATE_EPOCH the time that everything
// gets: the same input makes the same bytes. Architectures are those of Go.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	name        = "bcnn"
	summary     = "Run binary convolutional neural networks"
	description = "Classify images with networks whose weights and activations are one bit each,\n" +
		"convert, check and measure such networks, and serve them over HTTP and gRPC."
	homepage = "https://github.com/bitcnn/bitcnn"
	license  = "Apache-2.0"
	authors  = "The bitcnn authors"
)

// release is what all artifacts have in common.
type release struct {
	version string    // without the v
	time    time.Time // of the commit
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	version, ok := strings.CutPrefix(os.Getenv("VERSION"), "v")
	if !ok {
		return fmt.Errorf("VERSION is %q, want one such as v0.1.0", os.Getenv("VERSION"))
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r := release{version, time.Unix(seconds, 0).UTC()}
	switch {
	case len(args) == 4 && args[0] == "linux":
		return r.linux(args[1], args[2], args[3])
	case len(args) >= 3 && args[0] == "image":
		return r.image(args[1], args[2:])
	case len(args) == 4 && args[0] == "sbom":
		return r.sbom(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "formula":
		return r.formula(args[1])
	}
	return errors.New("want linux FOLDER ARCHITECTURE OUT, image OUT.tar ARCHITECTURE=FOLDER..., sbom FOLDER FILE OUT.json or formula OUT")
}

// create makes a file of what write writes; on an error there is none.
func create(path string, write func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(path))
	}
	return nil
}
