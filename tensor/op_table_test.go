package tensor_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

var update = flag.Bool("update", false, "write testdata/operations.jsonl again")

// A tableRow is what the recorders in testdata need to know of an operation.
type tableRow struct {
	Name, Torch     string
	Arity           int
	Truths, Complex bool
	NoGradient      string
}

func tableRows() (rows []tableRow) {
	for _, o := range device.Ops() {
		x := tensor.Ones(tensor.Complex128, 1)
		_, refused := attempt(func() ts { return ts{devicetest.Apply(o)(x, x)} })
		rows = append(rows, tableRow{o.Name, o.Torch, o.Arity, o.Truths, refused == "", o.NoGradient})
	}
	return rows
}

// The recorders of testdata and of package autograd's read the table, so that an operation needs no
// row in them.
func TestOp_TableIsWhatTheRecordersRead(t *testing.T) {
	var lines []byte
	for _, r := range tableRows() {
		b, err := json.Marshal(r)
		testutil.NoError(t, err)
		lines = append(append(lines, b...), '\n')
	}
	const file = "testdata/operations.jsonl"
	if *update {
		testutil.NoError(t, os.WriteFile(file, lines, 0o644))
	}
	b, err := os.ReadFile(file)
	testutil.NoError(t, err)
	if string(b) != string(lines) {
		t.Errorf("%s is not the table: go test -run TestOp_TableIs -update, then record again", file)
	}
}

func TestOp_HasAReferenceOfPyTorch(t *testing.T) {
	rows, _ := recorded(t)
	good, bad := map[string]int{}, map[string]int{}
	for _, r := range rows {
		if r.Error == "" {
			good[r.Op]++
		} else {
			bad[r.Op]++
		}
	}
	for _, o := range device.Ops() {
		if good[o.Name] < 5 {
			t.Errorf("%v: PyTorch made %d results and refused %d times", o, good[o.Name], bad[o.Name])
		}
	}
}
