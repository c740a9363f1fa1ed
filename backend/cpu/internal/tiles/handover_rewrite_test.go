package tiles

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of the source that handOverErrors are in.
const (
	announce = `	w.task = t
	w.seq++
	w.done.Store(0)
	w.state.Store(uint64(tiles) << 32)
`
	wakeUp = `	if w.sleepers.Load() > 0 {
		w.mu.Lock() // a worker that is about to sleep does so first
		//lint:ignore SA2001 nothing else is to be done then
		w.mu.Unlock()
		w.wake.Broadcast()
	}
`
	publish    = announce + wakeUp
	awaitTiles = `	w.wait(uint32(tiles), clock.Since(start)*3/time.Duration(2*max(own, 1)))
`
	dropTiles = `	v := w.state.Swap(uint64(tiles)<<32 | uint64(tiles))
	if next := uint32(v); next < tiles {
		w.done.Add(tiles - next)
	}
`
	takeTile = `	v := w.state.Add(1) - 1
	tiles, next := uint32(v>>32), uint32(v)
	if next >= tiles { // others were faster
		return false
	}
	mode := fpmode.Enter() // the submitter's is that of another thread
	w.task.Run(int(next), s)
	mode.Leave()
	seq := w.seq // the submitter may go on to the next task after Add
	if w.done.Add(1) == tiles && w.waiting.CompareAndSwap(seq, 0) {
		w.finish <- struct{}{}
	}
`
	awaitLast = `	w.waiting.Swap(w.seq)
	if w.done.Load() == tiles && w.waiting.CompareAndSwap(w.seq, 0) {
		return
	}
	<-w.finish
`
	fallAsleep = `	w.sleepers.Add(1)
	defer w.sleepers.Add(-1)
	if v := w.state.Load(); !w.stopped && uint32(v) >= uint32(v>>32) {
		w.wake.Wait()
	}
`
)

// handOverErrors are what could be wrong in a part of the source: from, replaced by to.
var handOverErrors = []struct{ use, name, part, from, to string }{
	{twoTasks, "the task is there after its tiles", publish, announce, `w.seq++; w.done.Store(0); w.state.Store(uint64(tiles) << 32); w.task = t
`},
	{twoTasks, "the number of the task is there after its tiles", publish, announce, `w.task = t; w.done.Store(0); w.state.Store(uint64(tiles) << 32); w.seq++
`},
	{twoTasks, "tiles are counted from 0 after they are there", publish, announce, `w.task = t; w.seq++; w.state.Store(uint64(tiles) << 32); w.done.Store(0)
`},
	{waiting, "sleepers are woken without the lock", publish, wakeUp, "if w.sleepers.Load() > 0 { w.wake.Broadcast() }"},
	{waiting, "sleepers are looked at before tiles are there", publish, publish, "asleep := w.sleepers.Load() > 0\n" + announce + strings.Replace(wakeUp, "w.sleepers.Load() > 0", "asleep", 1)},
	{twoTasks, "nobody waits for the last tiles", awaitTiles, awaitTiles, ``},
	{ends, "tiles are dropped in two steps", dropTiles, `w.state.Swap(uint64(tiles)<<32 | uint64(tiles))`, `w.state.Load(); w.state.Store(uint64(tiles)<<32 | uint64(tiles))`},
	{ends, "dropped tiles are not counted", dropTiles, `w.done.Add(tiles - next)`, ``},
	{twoTasks, "the task is read before a tile is taken", takeTile, takeTile, "task := w.task\n" + strings.Replace(takeTile, "w.task.Run", "task.Run", 1)},
	{twoTasks, "a tile is taken in two steps", takeTile, "v := w.state.Add(1) - 1", "v := w.state.Load(); w.state.Store(v + 1)"},
	{twoTasks, "a tile is taken although there is none left", takeTile, "\t\treturn false\n", ""},
	{twoTasks, "a tile is counted before it is done", takeTile, takeTile, `v := w.state.Add(1) - 1
		tiles, next := uint32(v>>32), uint32(v)
		if next >= tiles { return false }
		seq, last := w.seq, w.done.Add(1) == tiles
		mode := fpmode.Enter() // the submitter's is that of another thread
		w.task.Run(int(next), s)
		mode.Leave()
		if last && w.waiting.CompareAndSwap(seq, 0) { w.finish <- struct{}{} }`},
	{twoTasks, "the number of the task is read after the tile is counted", takeTile, "CompareAndSwap(seq, 0)", "CompareAndSwap(func() uint64 { _ = seq; return w.seq }(), 0)"},
	{twoTasks, "the submitter is woken whether it waits or not", takeTile, "w.waiting.CompareAndSwap(seq, 0)", "seq > 0"},
	{twoTasks, "the submitter does not look again before it sleeps", awaitLast, "if w.done.Load() == tiles && w.waiting.CompareAndSwap(w.seq, 0) {\n\t\treturn\n\t}\n", ""},
	{twoTasks, "the submitter looks before it says that it sleeps", awaitLast, awaitLast, "if w.done.Load() == tiles { return }; w.waiting.Swap(w.seq); <-w.finish"},
	{twoTasks, "the submitter does not take back that it sleeps", awaitLast, "&& w.waiting.CompareAndSwap(w.seq, 0) ", ""},
	{waiting, "a worker looks before it is counted as asleep", fallAsleep, fallAsleep, `v := w.state.Load()
	w.sleepers.Add(1)
	defer w.sleepers.Add(-1)
	if !w.stopped && uint32(v) >= uint32(v>>32) { w.wake.Wait() }`},
	{waiting, "a worker sleeps without looking", fallAsleep, "&& uint32(v) >= uint32(v>>32)", "&& v == v"},
	{twoTasks, "a worker sleeps when it is to stop", fallAsleep, "!w.stopped && ", ""},
}

// withErrors has every part do what weak.Broken says.
func withErrors(t *testing.T, src string) string {
	t.Helper()
	cases := map[string]string{}
	var parts []string
	for _, e := range handOverErrors {
		require.Equal(t, 1, strings.Count(e.part, e.from), "%s: not in its part", e.name)
		if cases[e.part] == "" {
			parts = append(parts, e.part)
		}
		cases[e.part] += fmt.Sprintf("case %q:\n%s\n", e.name, strings.Replace(e.part, e.from, e.to, 1))
	}
	for _, part := range parts {
		require.Equal(t, 1, strings.Count(src, part), "the source has changed, this is not in it:\n%s", part)
		src = strings.Replace(src, part, "switch weak.Broken {\ndefault:\n"+part+cases[part]+"}\n", 1)
	}
	return src
}

// plainFields are variables that threads share and that are not atomic.
var plainFields = []string{"task", "seq", "ctx", "stopped"}

// rewriter makes the changes of a file.
type rewriter struct {
	fset    *token.FileSet
	src     string
	changes map[int]change // by offset
	sites   []string
	names   map[string]int // of sites
}

type change struct {
	end    int
	insert string
}

// rewrite makes code use the types of package weak. It lists the sites at the end.
func rewrite(t *testing.T, name, src string) []byte {
	t.Helper()
	r := &rewriter{fset: token.NewFileSet(), src: src, changes: map[int]change{}, names: map[string]int{}}
	file, err := parser.ParseFile(r.fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		in := ""
		if f, ok := decl.(*ast.FuncDecl); ok {
			in = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool { return r.node(in, n) })
	}
	var out strings.Builder
	last := 0
	var offsets []int
	for at := range r.changes {
		offsets = append(offsets, at)
	}
	slices.Sort(offsets)
	for _, at := range offsets {
		require.GreaterOrEqual(t, at, last, "changes overlap")
		out.WriteString(src[last:at] + r.changes[at].insert)
		last = r.changes[at].end
	}
	out.WriteString(src[last:])
	if r.sites != nil {
		fmt.Fprintf(&out, "\nfunc init() { weak.Sites = %#v }\n", r.sites)
	}
	return []byte(out.String())
}

func (r *rewriter) at(p token.Pos) int { return r.fset.Position(p).Offset }

func (r *rewriter) text(n ast.Node) string { return r.src[r.at(n.Pos()):r.at(n.End())] }

func (r *rewriter) replace(from, to token.Pos, text string) {
	at := r.at(from)
	if c, ok := r.changes[at]; ok { // an insertion at the same place
		text = c.insert + text
	}
	r.changes[at] = change{r.at(to), text}
}

// plain reports whether an expression is a field of plainFields, of a Workers.
func plain(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(plainFields, s.Sel.Name) {
		return false
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return x.Name == "w"
	case *ast.SelectorExpr:
		return x.Sel.Name == "owner"
	}
	return false
}

// node makes the changes of a node and reports whether there are some to be made in it.
func (r *rewriter) node(in string, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		switch path := strings.Trim(n.Path.Value, `"`); path {
		case "runtime", "sync", "github.com/bitcnn/bitcnn/internal/clock":
			r.replace(n.Pos(), n.End(), "")
		case "sync/atomic":
			r.replace(n.Pos(), n.End(), `"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles/weak"`)
		}
		return false
	case *ast.ValueSpec:
		if n.Names[0].Name == "spinLoads" {
			r.replace(n.Values[0].Pos(), n.Values[0].End(), "1")
			return false
		}
	case *ast.StructType:
		for _, f := range n.Fields.List {
			if in == "" && len(f.Names) == 1 && slices.Contains(plainFields, f.Names[0].Name) {
				r.replace(f.Type.Pos(), f.Type.Pos(), "weak.Plain[")
				r.replace(f.Type.End(), f.Type.End(), "]")
			}
		}
	case *ast.ChanType:
		r.replace(n.Pos(), n.End(), "*weak.Chan")
		return false
	case *ast.UnaryExpr:
		if c, ok := n.X.(*ast.CompositeLit); ok && n.Op == token.AND && r.text(c.Type) == "Workers" {
			r.replace(n.Pos(), n.Pos(), "weak.New(")
			r.replace(n.End(), n.End(), ")")
		}
		if n.Op == token.ARROW {
			r.replace(n.Pos(), n.End(), r.text(n.X)+".Receive()")
			return false
		}
	case *ast.ForStmt:
		if in == "work" {
			r.replace(n.Body.Lbrace+1, n.Body.Lbrace+1, " weak.Forget(1);")
		}
	case *ast.ExprStmt:
		if strings.HasPrefix(r.text(n), "w.wait(") {
			r.replace(n.Pos(), n.Pos(), "weak.Forget(2); ")
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(plainFields, key.Name) {
			r.replace(n.Value.Pos(), n.Value.End(), "weak.PlainOf("+r.text(n.Value)+")")
			return false
		}
	case *ast.SendStmt:
		r.replace(n.Pos(), n.End(), r.text(n.Chan)+".Send()")
		return false
	case *ast.GoStmt:
		r.replace(n.Pos(), n.End(), "weak.Go(func() { "+r.text(n.Call)+" })")
		return false
	case *ast.IncDecStmt:
		if plain(n.X) {
			r.replace(n.Pos(), n.End(), fmt.Sprintf("%[1]s.Set(%[1]s.Get() + 1)", r.text(n.X)))
			return false
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == 1 && plain(n.Lhs[0]) {
			r.replace(n.Lhs[0].End(), n.Rhs[0].Pos(), ".Set(")
			ast.Inspect(n.Rhs[0], func(n ast.Node) bool { return r.node(in, n) })
			r.replace(n.End(), n.End(), ")")
			return false
		}
	case *ast.CallExpr:
		if len(n.Args) == 2 && r.text(n.Fun) == "make" && strings.HasPrefix(r.text(n.Args[0]), "chan ") {
			r.replace(n.Pos(), n.End(), "weak.MakeChan("+r.text(n.Args[1])+")")
			return false
		}
		r.site(in, n)
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			switch x.Name {
			case "atomic", "sync", "runtime", "clock":
				r.replace(x.Pos(), x.End(), "weak")
			}
		}
		if plain(n) {
			r.replace(n.End(), n.End(), ".Get()")
		}
	}
	return true
}

// site numbers the call of an atomic operation.
func (r *rewriter) site(in string, n *ast.CallExpr) {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	variable, ok := f.X.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"state", "done", "waiting", "sleepers"}, variable.Sel.Name) {
		return
	}
	name := in + ": " + r.text(n.Fun)
	if r.names[name]++; r.names[name] > 1 {
		name += fmt.Sprintf(" %d", r.names[name])
	}
	text := fmt.Sprint(len(r.sites))
	if len(n.Args) > 0 {
		text += ", "
	}
	r.replace(n.Lparen+1, n.Lparen+1, text)
	r.sites = append(r.sites, name)
}
