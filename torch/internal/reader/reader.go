package reader

import (
	"fmt"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Reader reads the data sets of one Python class. All of its functions must be set.
type Reader struct {
	// Check returns nil if Open can read the data set that a pickle describes, and otherwise an
	// error that wraps python.ErrUnsupported and gives the reason. It keeps no file open.
	Check func(o *pickle.Object) error
	// Open opens the data set. The caller must close it.
	Open func(r *python.Record) (data.DatasetCloser, error)
	// Collate makes a batch of samples for a DataLoader without a collate_fn.
	Collate func(samples []any) (any, error)
}

var registered = struct {
	sync.RWMutex
	readers map[python.Global]Reader
}{readers: make(map[python.Global]Reader)}

// Register makes r the reader of class. It must be called from an init function, and panics if the
// class has a reader already.
func Register(class python.Global, r Reader) {
	registered.Lock()
	defer registered.Unlock()
	if _, ok := registered.readers[class]; ok {
		panic(fmt.Sprintf("reader: class %v has two readers", class))
	}
	registered.readers[class] = r
}

// Find returns the reader of class.
func Find(class python.Global) (r Reader, ok bool) {
	registered.RLock()
	defer registered.RUnlock()
	r, ok = registered.readers[class]
	return r, ok
}

// Names returns the names of the classes that have a reader, without their modules, sorted.
func Names() []string {
	registered.RLock()
	defer registered.RUnlock()
	var names []string
	for class := range registered.readers {
		names = append(names, class.Name)
	}
	slices.Sort(names)
	return names
}
