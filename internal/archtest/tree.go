package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the import path that all packages of the tree begin with.
const Module = "github.com/turnd/turnd"

// Tree is what the rules look at.
type Tree struct {
	Packages []Package
	Files    []File
	GoMod    string
}

// Package is a Go package of the module. Path and the imports that are ours are relative to the module, with "." for
// its root; other imports are as written.
type Package struct {
	Path        string
	Name        string
	Doc         string   // package comment of the files that are not tests
	Imports     []string // of files that are not tests
	TestImports []string // of test files
	Deps        []string // Imports, and what those import in turn
	TestOnly    bool     // the package has no file but tests
}

// File is a file written by hand. Path is relative to the root of the tree.
type File struct {
	Path     string
	Lines    int
	Funcs    []Func // of Go files
	Comments string // of Go files; of others the whole text
}

// Func is a function or method with its length in lines, signature and braces included.
type Func struct {
	Name  string
	Lines int
}

// Load reads the tree below root.
func Load(ctx context.Context, root string) (*Tree, error) {
	root, err := filepath.Abs(root) // go list answers with absolute folders
	if err != nil {
		return nil, fmt.Errorf("resolve the root: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	t := &Tree{GoMod: string(mod)}
	docs := map[string]string{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipDir(root, path)
		}
		return t.addFile(root, path, docs)
	})
	if err != nil {
		return nil, fmt.Errorf("walk the tree: %w", err)
	}
	if err := t.addPackages(ctx, root, docs); err != nil {
		return nil, err
	}
	return t, nil
}

// skipDir leaves out what is not written here.
func skipDir(root, path string) error {
	name := filepath.Base(path)
	hidden := strings.HasPrefix(name, ".") && name != ".ci" && path != root
	if hidden || slices.Contains([]string{"node_modules", "third_party", "testdata", "bin"}, name) {
		return fs.SkipDir
	}
	return nil
}

// addFile reads a file, and keeps the package comment if it has one.
func (t *Tree) addFile(root, path string, docs map[string]string) error {
	if !slices.Contains([]string{".go", ".proto", ".sql", ".sh"}, filepath.Ext(path)) {
		return nil
	}
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since it was listed
	}
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	file := File{Path: filepath.ToSlash(rel), Lines: bytes.Count(source, []byte("\n")), Comments: string(source)}
	if filepath.Ext(path) == ".go" {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		if ast.IsGenerated(parsed) {
			return nil
		}
		file.Funcs, file.Comments = functions(set, parsed), comments(parsed)
		if doc := parsed.Doc.Text(); doc != "" && !strings.HasSuffix(path, "_test.go") {
			docs[filepath.Dir(path)] = doc
		}
	}
	t.Files = append(t.Files, file)
	return nil
}

func functions(set *token.FileSet, file *ast.File) []Func {
	var funcs []Func
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
			funcs = append(funcs, Func{Name: f.Name.Name, Lines: lines})
		}
	}
	return funcs
}

func comments(file *ast.File) string {
	var all strings.Builder
	for _, group := range file.Comments {
		for _, c := range group.List {
			all.WriteString(c.Text + "\n")
		}
	}
	return all.String()
}

// listed is the part of go list's answer that is used.
type listed struct {
	ImportPath, Dir, Name                    string
	Imports, TestImports, XTestImports, Deps []string
	GoFiles, CgoFiles                        []string
}

// addPackages asks go list, which knows build constraints and transitive imports.
func (t *Tree) addPackages(ctx context.Context, root string, docs map[string]string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,CgoFiles,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w: %s", err, problems.String())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read go list's answer: %w", err)
		}
		if strings.Contains(l.ImportPath, "/node_modules/") {
			continue
		}
		t.Packages = append(t.Packages, Package{
			Path: relative(l.ImportPath), Name: l.Name, Doc: docs[l.Dir],
			Imports: relatives(l.Imports), TestImports: relatives(slices.Concat(l.TestImports, l.XTestImports)),
			Deps:     relatives(l.Deps),
			TestOnly: len(l.GoFiles)+len(l.CgoFiles) == 0,
		})
	}
}

func relatives(paths []string) []string {
	rel := make([]string, len(paths))
	for i, p := range paths {
		rel[i] = relative(p)
	}
	return rel
}

// relative shortens paths of the module; ours begin with "./" or are ".", so that they can't be taken for others.
func relative(path string) string {
	if path == Module {
		return "."
	}
	if rest, ok := strings.CutPrefix(path, Module+"/"); ok {
		return "./" + rest
	}
	return path
}
