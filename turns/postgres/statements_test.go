package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// source is what the package's own files say about their constants.
type source struct {
	values map[string]ast.Expr
	used   map[string]bool // by a function, and not only within another constant
}

func readSource(t testing.TB) source {
	t.Helper()
	isCode := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), ".", isCode, 0)
	require.NoError(t, err)
	s := source{map[string]ast.Expr{}, map[string]bool{}}
	for _, file := range packages["postgres"].Files {
		for _, decl := range file.Decls {
			s.add(decl)
		}
	}
	return s
}

func (s source) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.CONST && len(v.Values) == len(v.Names) {
				for i, name := range v.Names {
					s.values[name.Name] = v.Values[i]
				}
			}
		}
	case *ast.FuncDecl:
		ast.Inspect(decl.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				s.used[id.Name] = true
			}
			return true
		})
	}
}

// text is the value of a constant made of literals and other constants.
func (s source) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return s.text(e.X) + s.text(e.Y)
	case *ast.Ident:
		return s.text(s.values[e.Name])
	}
	return ""
}

var beginsAsSQL = regexp.MustCompile(`^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b`)

// statements is every SQL statement of the package by the name of its constant. What only other constants use is a
// fragment and is tried within them.
func statements(t testing.TB) map[string]string {
	t.Helper()
	s := readSource(t)
	all := map[string]string{}
	for name, value := range s.values {
		if text := s.text(value); s.used[name] && beginsAsSQL.MatchString(text) {
			all[name] = text
		}
	}
	return all
}

// numbered is a statement with its named parameters numbered.
func numbered(t testing.TB, sql string) string {
	t.Helper()
	text, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), nil, sql, nil)
	require.NoError(t, err)
	return text
}

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	d := openOwn(t)
	conn, err := d.rows.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	all := statements(t)
	require.Greater(t, len(all), 20, "the scan of the source finds the statements")
	for name, sql := range all {
		_, err := conn.Conn().Prepare(t.Context(), name, numbered(t, sql))
		require.NoError(t, err, name)
	}
}
