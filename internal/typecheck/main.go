// Command typecheck type-checks all packages of the module and their tests for other
// systems, without cgo:
//
//	go run ./internal/typecheck linux/arm64 windows/amd64 ...
//
// It finds what does not compile there, as go vet would, which compiles what the packages
// import before it looks at them: with gRPC that takes minutes for each system. Of other
// modules and of the standard library only the declarations are read.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/typecheck SYSTEM/ARCHITECTURE...")
		os.Exit(2)
	}
	failed := false
	for _, platform := range os.Args[1:] {
		n, err := check(platform, ".")
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
			failed = true
			continue
		}
		fmt.Printf("%s: %d packages\n", platform, n)
	}
	if failed {
		os.Exit(1)
	}
}

// pkg is a package as go list describes it; a package that is compiled for a test is one of
// its own.
type pkg struct {
	Dir, ImportPath, Name string
	ForTest               string
	GoFiles               []string
	Imports               []string
	ImportMap             map[string]string
	Module                *struct{ Main bool }
	Error                 *struct{ Err string }

	types *types.Package
	done  chan struct{} // closed when types is set
	errs  []error
}

func (p *pkg) own() bool { return p.Module != nil && p.Module.Main }

// check type-checks the module in a folder for a platform, SYSTEM/ARCHITECTURE, and returns
// how many packages that were, tests included. The errors are those of the module's packages
// and of go list, at most ten.
func check(platform, dir string) (n int, err error) {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, errors.New("want SYSTEM/ARCHITECTURE")
	}
	list, err := load(system, architecture, dir)
	if err != nil {
		return 0, err
	}
	byPath := map[string]*pkg{}
	for _, p := range list {
		p.done = make(chan struct{})
		byPath[p.ImportPath] = p
	}
	// go list has a package behind all that it imports, so some worker can always go on.
	sizes := types.SizesFor("gc", architecture)
	if sizes == nil {
		return 0, fmt.Errorf("there is no architecture %q", architecture)
	}
	work := make(chan *pkg)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range work {
				p.check(byPath, sizes)
				close(p.done)
			}
		})
	}
	for _, p := range list {
		work <- p
	}
	close(work)
	wg.Wait()
	var errs []error
	for _, p := range list {
		if !p.own() {
			continue
		}
		n++
		errs = append(errs, p.errs...)
	}
	return n, errors.Join(errs[:min(len(errs), 10)]...)
}

// load lists the packages of the module and all that they import, each behind its imports.
func load(system, architecture, dir string) ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=Dir,ImportPath,Name,ForTest,GoFiles,Imports,ImportMap,Module,Error", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var list []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		// The main packages of tests are made by the go command alone.
		if !strings.HasSuffix(p.ImportPath, ".test") {
			list = append(list, p)
		}
	}
}

// check parses and type-checks the package; errors are kept.
func (p *pkg) check(byPath map[string]*pkg, sizes types.Sizes) {
	if p.ImportPath == "unsafe" {
		p.types = types.Unsafe
		return
	}
	if p.Error != nil {
		p.errs = append(p.errs, errors.New(p.Error.Err))
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		files = append(files, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	config := types.Config{
		Importer:         importer{p, byPath},
		Sizes:            sizes,
		IgnoreFuncBodies: !p.own(),
		Error:            func(err error) { p.errs = append(p.errs, err) },
	}
	p.types, _ = config.Check(path, fset, files, nil) // Error has the errors
}

// importer gives a package what it imports.
type importer struct {
	of     *pkg
	byPath map[string]*pkg
}

func (i importer) Import(path string) (*types.Package, error) {
	if to, ok := i.of.ImportMap[path]; ok {
		path = to
	}
	p := i.byPath[path]
	if p == nil {
		return nil, fmt.Errorf("package %s is not there", path)
	}
	<-p.done
	return p.types, nil
}
