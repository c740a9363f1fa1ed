package bitcnn

import (
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/bitcnn/bitcnn"

// release is the version that this is, or becomes; capi/include/bitcnn.h has it, too.
const release = "v0.1.0"

// linked is the version of what scripts/release, scripts/lib and scripts/wheel build, which say it
// to the linker.
var linked string

// Version returns the version of this module in the program: that of a release, such as
// "v0.1.0", or of what comes before it with the commit, where the program says it:
// "v0.1.0-dev+efcb69e", and .dirty behind it where files had been changed.
func Version() string {
	if linked != "" {
		return linked
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release + "-dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != modulePath {
			continue
		}
		if m.Replace != nil && m.Replace.Version != "" {
			m = m.Replace
		}
		commit := ""
		if m == &info.Main {
			commit = commitOf(info.Settings)
		}
		return versionOf(m.Version, commit)
	}
	return release + "-dev"
}

// commitOf returns the commit that the go command has noted.
func commitOf(settings []debug.BuildSetting) (commit string) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), shortCommit)]
		case s.Key == "vcs.modified" && s.Value == "true" && commit != "":
			commit += ".dirty"
		}
	}
	return commit
}

// shortCommit is how many digits of a commit are shown.
const shortCommit = 7

// versionOf makes a version of that of a module: "v1.2.3", "(devel)", or one that names a
// commit by its time and first digits, "v0.0.0-20261123071500-efcb69e01234".
func versionOf(module, commit string) string {
	if _, after, ok := strings.Cut(module, "-"); module != "" && module != "(devel)" && !ok {
		return module
	} else if hash := after[strings.LastIndex(after, "-")+1:]; commit == "" && ok {
		commit = hash[:min(len(hash), shortCommit)]
	}
	if commit == "" {
		return release + "-dev"
	}
	return release + "-dev+" + commit
}
