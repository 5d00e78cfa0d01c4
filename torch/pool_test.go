package torch

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// regionOf is where a tensor of ours lives.
func regionOf(x *tensor.Tensor) *region { return foreignTensors.LoanOf(x.Storage()).(tenant).region }

// newTable is a table without the forgotten tensors of other tests.
func newTable() *regionTable {
	return &regionTable{byID: map[sys.FileID]*region{}, watched: map[int]*region{}}
}

// letGo begins and ends a tenancy of each region.
func (t *regionTable) letGo(list []*region) (err error) {
	for _, r := range list {
		t.addTenant(r)
	}
	for _, r := range list {
		err = errors.Join(err, t.removeTenant(r))
	}
	return err
}

// TestRegion_FewWait lets more tensors go than may wait. The youngest wait, of both kinds together.
// The files of the others are closed.
func TestRegion_FewWait(t *testing.T) {
	table := newTable()
	var homes []*region
	for i := range idleFiles + 6 {
		homes = append(homes, testutil.Value(table.allocateRegion(1, i%2 == 0))(t))
	}
	if err := table.letGo(homes); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.idle, homes[6:]) {
		t.Errorf("%d wait, which are not the %d youngest", len(table.idle), idleFiles)
	}
	for _, r := range homes[:6] {
		if _, err := r.file.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("memory that does not wait is still open: %v", err)
		}
	}
	if err := table.trimIdle(0); err != nil || len(table.idle) != 0 {
		t.Errorf("when all are given back %d wait, %v", len(table.idle), err)
	}
}

// TestRegion_LittleWaits lets more memory go than may wait. The memory has a size, and hardly any
// pages.
func TestRegion_LittleWaits(t *testing.T) {
	table := newTable()
	var homes []*region
	for range 3 {
		r := &region{nbytes: 1, ours: true}
		if err := errors.Join(r.createFile(), r.prepareFile(idleBytes/2)); err != nil {
			t.Fatal(err)
		}
		table.byID[r.id] = r
		homes = append(homes, r)
	}
	if err := table.letGo(homes); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.idle, homes[1:]) {
		t.Errorf("%d of three halves wait, or not the younger ones", len(table.idle))
	}
	if err := table.trimIdle(0); err != nil {
		t.Error(err)
	}
}

// TestRegion_ANameThatIsGoneIsAnError sends a tensor whose name a manager of PyTorch's has removed.
// Its memory is not used again.
func TestRegion_ANameThatIsGoneIsAnError(t *testing.T) {
	opts := Options{Strategy: FileSystem}
	x := testutil.Value(opts.Empty(tensor.Uint8, 5000))(t)
	home := regionOf(x)
	if err := os.Remove(home.path()); err != nil {
		t.Fatal(err)
	}
	if v, err := transmit(t, opts, x); !errors.Is(err, ErrGone) {
		t.Errorf("%v, %v", v, err)
	}
	x.Close()
	again := testutil.Value(opts.Empty(tensor.Uint8, 5000))(t)
	defer again.Close()
	if regionOf(again) == home {
		t.Error("memory without its name is used again")
	}
}
