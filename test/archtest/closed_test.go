package archtest_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/dist"
	internalshm "github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// closed is the ErrClosed of each package that has one.
var closed = map[string]error{
	".": shoal.ErrClosed, "data": data.ErrClosed, "dist": dist.ErrClosed, "internal/link": link.ErrClosed,
	"internal/arena": internalshm.ErrClosed, "ipc": ipc.ErrClosed, "manager": manager.ErrClosed,
	"pool": pool.ErrClosed, "shm": shm.ErrClosed, "tensor": tensor.ErrClosed, "torch": torch.ErrClosed,
}

func TestErrClosed_IsThatOfPackageOs(t *testing.T) {
	for dir, err := range closed {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: ErrClosed does not wrap os.ErrClosed", dir)
		}
		if strings.Contains(err.Error(), os.ErrClosed.Error()) {
			t.Errorf("%s: %q speaks of a file", dir, err)
		}
	}
	for dir := range declaring(t, "ErrClosed") {
		if closed[dir] == nil && dir != "nats" { // a module of its own, with the same test
			t.Errorf("%s has an ErrClosed that this test does not know", dir)
		}
	}
}

// declaring returns the directories whose packages declare a variable of the name.
func declaring(t *testing.T, name string) map[string]bool {
	dirs := make(map[string]bool)
	err := fs.WalkDir(houseFS, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(houseFS, file)
		if err != nil || !strings.Contains(string(src), name) || strings.Contains(file, "testdata/") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range tree.Decls {
			if vars, ok := d.(*ast.GenDecl); ok && vars.Tok == token.VAR && declares(vars, name) {
				dirs[path.Dir(file)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func declares(vars *ast.GenDecl, name string) bool {
	for _, spec := range vars.Specs {
		for _, id := range spec.(*ast.ValueSpec).Names {
			if id.Name == name {
				return true
			}
		}
	}
	return false
}
