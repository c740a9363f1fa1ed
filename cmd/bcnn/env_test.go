package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// gpuSystem ends a test on systems without GPU backends, and where they cannot be
// built.
func gpuSystem(t *testing.T) {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64", "linux/arm64":
	case "windows/amd64":
		t.Skip("for a POSIX shell")
	default:
		require.Contains(t, fail(t, exitJob, "env"), "on Linux on amd64 and arm64, and on Windows on amd64, only")
		t.Skip("there are no GPU backends on this system")
	}
	for _, name := range []string{"go", "cc"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Absent(t, name, err)
		}
	}
}

// shell runs lines in a folder and returns what they print. The environment is that
// of the test without the settings that the lines are to make, and with some more.
func shell(t *testing.T, dir, lines string, more ...string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", lines)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "CGO_CFLAGS" && name != "PKG_CONFIG" && name != "GOFLAGS" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, more...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", lines, out)
	return string(out)
}

func TestEnv(t *testing.T) {
	gpuSystem(t)
	names := []string{`"a" b`, "it's", "cache", "a b", "$(false)"}
	if testing.Short() {
		names = names[:2]
	}
	for _, name := range names {
		cache := filepath.Join(t.TempDir(), name)
		t.Setenv("XDG_CACHE_HOME", cache)
		lines := succeed(t, "env")
		require.Equal(t, lines, succeed(t, "env"))
		folders, err := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`).Replace(cache), "bitcnn", "headers-*"))
		require.NoError(t, err)
		require.Len(t, folders, 1)
		include, err := quoteFlag("-I" + filepath.Join(folders[0], "include"))
		require.NoError(t, err)
		script, err := quoteFlag(filepath.Join(folders[0], "pkg-config"))
		require.NoError(t, err)
		// What the user has set stays.
		got := shell(t, t.TempDir(), lines+`printf '%s\n' "$CGO_CFLAGS" "$PKG_CONFIG"`, "CGO_CFLAGS=-Ofast -DMINE")
		require.Equal(t, "-Ofast -DMINE "+include+"\n"+script+"\n", got)
		require.Contains(t, shell(t, t.TempDir(), lines+`echo "$CGO_CFLAGS"`), "-O2 ")
		for _, file := range []string{"cuda.h", "CL/cl.h"} {
			info, err := os.Stat(filepath.Join(folders[0], "include", file))
			require.NoError(t, err)
			require.Positive(t, info.Size())
		}
	}
	for name, why := range map[string]string{`'"`: "quotes of both kinds", "\x1b[2J": "does not print"} {
		t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), name))
		require.Contains(t, fail(t, exitJob, "env"), why)
	}
	t.Setenv("XDG_CACHE_HOME", "relative")
	fail(t, exitJob, "env")
}

// What the user has set stays, and a second time nothing is added.
func TestCmdLine(t *testing.T) {
	include, err := quoteFlag(`-IC:\Users\A B\include`)
	require.NoError(t, err)
	const own = `'-IC:\Users\A B\include' -DCL_TARGET_OPENCL_VERSION=120`
	require.Equal(t, `set "CGO_CFLAGS=-O2 -g `+own+`"`, cmdLine("", include))
	require.Equal(t, `set "CGO_CFLAGS=-Ofast -DMINE `+own+`"`, cmdLine("-Ofast -DMINE", include))
	require.Equal(t, `set "CGO_CFLAGS=-Ofast `+own+`"`, cmdLine("-Ofast "+own, include))
}

// The go command runs a program of the folder, which nobody else may have put there.
func TestEnvOfOthers(t *testing.T) {
	gpuSystem(t)
	for want, make := range map[string]func(folder string) error{
		"a link to a folder":    func(folder string) error { return os.Symlink(t.TempDir(), folder) },
		"others may write in":   func(folder string) error { return errors.Join(os.Mkdir(folder, 0o755), os.Chmod(folder, 0o775)) },
		"belongs to user 54321": func(folder string) error { return errors.Join(os.Mkdir(folder, 0o755), os.Chown(folder, 54321, -1)) },
		"not a directory":       func(folder string) error { return os.WriteFile(folder, nil, 0o644) },
	} {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		if err := make(filepath.Join(cache, "bitcnn")); err != nil {
			require.NotZero(t, os.Geteuid(), err) // only root gives folders away
			continue
		}
		require.Contains(t, fail(t, exitJob, "env"), want)
	}
}

// The stand-in for pkg-config answers for OpenCL alone, and asks the system's for
// everything else.
func TestPkgConfig(t *testing.T) {
	gpuSystem(t)
	dir := t.TempDir()
	script := writeFile(t, filepath.Join(dir, "script"), pkgConfig)
	writeFile(t, filepath.Join(dir, "pkg-config"), "#!/bin/sh\necho system: \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "pkg-config"), 0o755))
	for args, want := range map[string]string{
		"--cflags -- OpenCL":      "-DCL_TARGET_OPENCL_VERSION=120\n",
		"--libs -- OpenCL":        "",
		"--cflags -- zlib":        "system: --cflags -- zlib\n",
		"--cflags -- OpenCL zlib": "system: --cflags -- OpenCL zlib\n",
		"--libs -- MyOpenCL":      "system: --libs -- MyOpenCL\n",
	} {
		require.Equal(t, want, shell(t, dir, "sh "+script+" "+args, "PATH="+dir+":"+os.Getenv("PATH")), args)
	}
}

// envLines is what the command prints. Its folder is always the same, since its name
// is part of what go build compares.
func envLines(t *testing.T) string {
	var lines string
	t.Run("env", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", filepath.Join(testenv.Root(t), "build", "cache"))
		lines = succeed(t, "env")
	})
	return lines
}

// A module elsewhere that imports this one builds with nothing, and with GPUs by the
// documented line; vendored, too. Its program computes the same bits on all devices.
func TestOutsideModule(t *testing.T) {
	gpuSystem(t)
	root, dir := testenv.Root(t), t.TempDir()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(data)
	}
	requires := regexp.MustCompile(`(?ms)^(go [0-9.]+$|require \(.*?^\))`).FindAllString(read("go.mod"), -1)
	require.GreaterOrEqual(t, len(requires), 2)
	writeFile(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module example.com/outside\n\n%s\n\nrequire %s v0.0.0\n\nreplace %[2]s => %q\n",
		strings.Join(requires, "\n\n"), "github.com/bitcnn/bitcnn", root))
	writeFile(t, filepath.Join(dir, "go.sum"), read("go.sum"))
	writeFile(t, filepath.Join(dir, "main.go"), read("cmd/bcnn/testdata/outside/main.go"))
	driver := filepath.Join(root, "build", "emulated") // which scripts/cuda-emulator makes
	if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
		driver = old + ":" + driver
	}
	run := func(t *testing.T, mode, lines string, withGPUs bool) {
		// With -trimpath the folder is no part of what go build compares.
		out := shell(t, dir, lines, "GOPROXY=off", "GOWORK=off", "GOFLAGS=-trimpath -mod="+mode,
			"LD_LIBRARY_PATH="+driver, "POCL_CACHE_DIR="+filepath.Join(root, "build", "pocl"))
		require.Contains(t, out, "cpu: the same bits\n")
		require.Equal(t, withGPUs, !strings.Contains(out, "this program was built without CUDA"), out)
		require.Equal(t, withGPUs, !strings.Contains(out, "this program was built without OpenCL"), out)
		t.Log(out)
	}
	const plain, gpus = "go build -o plain . && ./plain", "go build -tags cuda,opencl -o gpus . && ./gpus"
	run(t, "mod", plain, false)
	t.Run("slow", func(t *testing.T) {
		testenv.Long(t)
		env := envLines(t)
		run(t, "mod", env+gpus, true)
		run(t, "mod", "go mod vendor\nexport GOFLAGS='-trimpath -mod=vendor'\n"+plain, false)
		run(t, "vendor", env+gpus, true)
	})
}

// The command is installed from a module proxy: the files that it is built of cannot
// be executed.
func TestInstall(t *testing.T) {
	testenv.Long(t)
	gpuSystem(t)
	root, dir := testenv.Root(t), t.TempDir()
	env := envLines(t)
	const version = "v0.0.1"
	proxy := filepath.Join(dir, "proxy", "github.com", "bitcnn", "bitcnn", "@v")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	writeFile(t, filepath.Join(proxy, version+".mod"), string(mod))
	writeFile(t, filepath.Join(proxy, version+".info"), fmt.Sprintf(`{"Version":%q}`, version))
	writeFile(t, filepath.Join(proxy, "list"), version+"\n")
	zipModule(t, filepath.Join(proxy, version+".zip"), root, "github.com/bitcnn/bitcnn@"+version)

	modules := strings.TrimSpace(shell(t, root, "go env GOMODCACHE"))
	cache := filepath.Join(dir, "modules")
	t.Cleanup(func() { shell(t, dir, "chmod -R u+w "+cache) })
	shell(t, dir, env+"go install -tags cuda,opencl github.com/bitcnn/bitcnn/cmd/bcnn@"+version,
		"GOPROXY=file://"+filepath.Join(dir, "proxy")+",file://"+filepath.Join(modules, "cache", "download"),
		"GOSUMDB=off", "GOFLAGS=-trimpath", "GOMODCACHE="+cache, "GOBIN="+dir)
	info, err := os.Stat(filepath.Join(cache, "github.com/bitcnn/bitcnn@"+version, "scripts", "opencl-pkg-config"))
	require.NoError(t, err)
	require.Zero(t, info.Mode()&0o111)
	out := shell(t, dir, "./bcnn devices")
	require.NotContains(t, out, "this build")
	require.Regexp(t, `(?m)^cpu  `, out)
}

// zipModule writes the files of a module as a module proxy serves them.
func zipModule(t *testing.T, file, root, prefix string) {
	f, err := os.Create(file)
	require.NoError(t, err)
	z := zip.NewWriter(f)
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if rel == "bin" || rel == "build" || rel != "." && (strings.HasPrefix(d.Name(), ".") || !errors.Is(err, fs.ErrNotExist)) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := z.Create(path.Join(prefix, filepath.ToSlash(rel)))
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}))
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}
