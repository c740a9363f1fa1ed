package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// site is a place in a file where one token can be another one.
type site struct {
	file       string // path
	line       int
	from, to   int // bytes of the token
	old, new   string
	code       string // the line, without space around it
	occurrence int    // which of the same token and replacement in lines of this text
	outside    bool   // of functions: coverage says nothing of it
	function   int    // the line on which the body of its function begins
	decided    int    // the line of the switch whose case it decides, or of the function whose constant it is, of which coverage says nothing
}

func (s site) String() string { return fmt.Sprintf("%s:%d: %s → %s", s.file, s.line, s.old, s.new) }

// swaps are the operators that take each other's place, from arithmetic, comparisons and
// logic (the standard set of PIT, https://pitest.org/quickstart/mutators).
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
	token.INC: token.DEC, token.DEC: token.INC,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
	token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN,
	token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
	token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

// sitesIn lists the sites of the files of a folder, but for tests and generated files.
func sitesIn(dir string) ([]site, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []site
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		found, err := sitesOf(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// sitesOf lists the sites of a file.
func sitesOf(name string) ([]site, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	lines := strings.Split(string(src), "\n")
	var all []site
	inside, function := token.NoPos, 0 // up to the end of a function, and where that begins
	cases := map[ast.Expr]int{}
	decided := struct { // the last of those expressions
		end  token.Pos
		line int
	}{}
	add := func(at token.Pos, old, new string) {
		p := set.Position(at)
		line := 0
		if at < decided.end {
			line = decided.line
		}
		all = append(all, site{outside: at >= inside, function: function, decided: line, file: name, line: p.Line, from: p.Offset, to: p.Offset + len(old), old: old, new: new, code: strings.TrimSpace(lines[p.Line-1])})
	}
	swap := func(at token.Pos, t token.Token) {
		if other, ok := swaps[t]; ok {
			add(at, t.String(), other.String())
		}
	}
	beside := map[ast.Expr]bool{} // results beside an error, which nobody looks at, and numbers of which only the sign counts
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && beside[e] {
			return false
		}
		if e, ok := n.(ast.Expr); ok && cases[e] > 0 {
			decided.end, decided.line = e.End(), cases[e]
		}
		switch n := n.(type) {
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					cases[e] = set.Position(n.Switch).Line
				}
			}
		case *ast.FuncDecl:
			inside = n.End()
			if n.Body != nil {
				function = set.Position(n.Body.Lbrace).Line
			}
		case *ast.GenDecl:
			if n.Tok == token.CONST && n.Pos() < inside {
				decided.end, decided.line = n.End(), function
			}
		case *ast.FuncLit:
			inside = max(inside, n.End())
		case *ast.ImportSpec:
			return false
		case *ast.ReturnStmt:
			if last := len(n.Results) - 1; last > 0 && isError(n.Results[last]) {
				for _, e := range n.Results[:last] {
					beside[e] = true
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Inf" {
				for _, e := range n.Args {
					if minus, ok := e.(*ast.UnaryExpr); ok {
						e = minus.X
					}
					beside[e] = true
				}
			}
		case *ast.BinaryExpr:
			if !isText(n) {
				swap(n.OpPos, n.Op)
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT || n.Op == token.SUB {
				add(n.OpPos, n.Op.String(), " ")
			}
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			swap(n.TokPos, n.Tok)
		case *ast.BranchStmt:
			swap(n.TokPos, n.Tok)
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 32); n.Kind == token.INT && err == nil {
				add(n.ValuePos, n.Value, strconv.FormatInt(v+1, 10))
			}
		case *ast.Ident:
			switch n.Name {
			case "true":
				add(n.NamePos, "true", "false")
			case "false":
				add(n.NamePos, "false", "true")
			}
		}
		return true
	})
	slices.SortFunc(all, func(a, b site) int { return a.from - b.from })
	seen := map[[3]string]int{}
	for i := range all {
		key := [3]string{all[i].code, all[i].old, all[i].new}
		all[i].occurrence = seen[key]
		seen[key]++
	}
	return all, nil
}

// isError reports whether the last result of a return is an error for certain: a call that makes
// one, or a variable that is called so.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err"
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok {
			x, ok := f.X.(*ast.Ident)
			return ok && (x.Name == "fmt" && f.Sel.Name == "Errorf" || x.Name == "errors" && f.Sel.Name == "New")
		}
	}
	return false
}

// isText reports whether an operand is a literal text, which + joins.
func isText(e *ast.BinaryExpr) bool {
	for _, side := range []ast.Expr{e.X, e.Y} {
		switch side := side.(type) {
		case *ast.BasicLit:
			if side.Kind == token.STRING {
				return true
			}
		case *ast.BinaryExpr:
			if isText(side) {
				return true
			}
		}
	}
	return false
}

// mutated returns a file with a site changed.
func (s site) mutated() ([]byte, error) {
	src, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	return slices.Concat(src[:s.from], []byte(s.new), src[s.to:]), nil
}
