package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	named   = regexp.MustCompile(`\bdocs/[\w-]+\.md\b`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks follows the links of all pages, and looks for the pages that other files name.
func TestLinks(t *testing.T) {
	root := testenv.Root(t)
	links := 0
	sources(t, root, func(name, text string) {
		if path.Ext(name) != ".md" {
			for _, page := range named.FindAllString(text, -1) {
				if _, err := os.Stat(filepath.Join(root, page)); err != nil {
					t.Errorf("%s names %s, which does not exist", name, page)
				}
			}
			return
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if err := follow(root, name, m[1]); err != "" {
				t.Errorf("%s: the link %s: %s", name, m[1], err)
			}
		}
	})
	require.Greater(t, links, 200)
}

// TestPagesAreListed: each page of docs is in the README, so that it can be found.
func TestPagesAreListed(t *testing.T) {
	root := testenv.Root(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	for _, page := range pages(t, root) {
		require.Contains(t, string(readme), "("+page, "the README has no link to %s", page)
	}
}

// TestFollow finds links that lead nowhere.
func TestFollow(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "notes"), 0o755))
	page := "# A page\n\n## `code` and, more: ½\n\n```\n# no heading\n```\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "notes/a.md"), []byte(page), 0o644))
	for to, want := range map[string]string{
		"a.md":                     "",
		"../notes/a.md#a-page":     "",
		"#code-and-more-½":         "",
		"b.md":                     "there is no such file",
		"a.md#another":             "there is no such heading",
		"#no-heading":              "there is no such heading",
		"../notes":                 "",
		"../notes/../notes/a.md#x": "there is no such heading",
	} {
		require.Equal(t, want, follow(root, "notes/a.md", to), to)
	}
}

// follow returns what is wrong with a link of a page, or "".
func follow(root, page, to string) string {
	file, anchor, _ := strings.Cut(to, "#")
	target := page
	if file != "" {
		target = path.Join(path.Dir(page), file)
	}
	info, err := os.Stat(filepath.Join(root, target))
	if err != nil {
		return "there is no such file"
	}
	if anchor == "" || info.IsDir() || path.Ext(target) != ".md" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(root, target))
	if err != nil {
		return err.Error()
	}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		if strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// pages returns the pages of docs, with the folder.
func pages(t *testing.T, root string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	require.NoError(t, err)
	for i, name := range names {
		names[i] = "docs/" + filepath.Base(name)
	}
	return names
}

// sources calls visit with the texts that people write: pages, code, scripts.
func sources(t *testing.T, root string, visit func(name, text string)) {
	t.Helper()
	written := []string{"", ".md", ".go", ".py", ".sh", ".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".cl", ".yaml", ".yml", ".toml", ".json"}
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "build" || rel == "bin" || d.Name() == "testdata" || d.Name() == "node_modules" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(written, path.Ext(rel)) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			visit(filepath.ToSlash(rel), string(text))
		}
		return err
	}))
}
