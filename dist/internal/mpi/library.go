package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// An entry is the index of a library function in symbols.
type entry int

const (
	initThread entry = iota
	finalize
	libraryVersion
	errorString
	commRank
	commSize
	commSplit
	commFree
	commSetErrhandler
	bcast
	reduce
	allreduce
	reduceScatterBlock
	gather
	allgather
	scatter
	alltoall
	isend
	recv
	iprobe
	getCount
	test
	numEntries
)

var symbols = [numEntries]string{
	initThread: "MPI_Init_thread", finalize: "MPI_Finalize", libraryVersion: "MPI_Get_library_version",
	errorString: "MPI_Error_string", commRank: "MPI_Comm_rank", commSize: "MPI_Comm_size",
	commSplit: "MPI_Comm_split", commFree: "MPI_Comm_free", commSetErrhandler: "MPI_Comm_set_errhandler",
	bcast: "MPI_Bcast", reduce: "MPI_Reduce", allreduce: "MPI_Allreduce",
	reduceScatterBlock: "MPI_Reduce_scatter_block", gather: "MPI_Gather", allgather: "MPI_Allgather",
	scatter: "MPI_Scatter", alltoall: "MPI_Alltoall", isend: "MPI_Isend", recv: "MPI_Recv",
	iprobe: "MPI_Iprobe", getCount: "MPI_Get_count", test: "MPI_Test",
}

// A Library is a loaded MPI library. It is made by [Load] and stays loaded. [Library.Init] must
// be called before its communicators are used.
type Library struct {
	lib     *dl.Library
	flavor  Flavor
	abi     abi
	entries [numEntries]uintptr
	version string
	hydra   hydra
}

// ErrThreads is wrapped by errors of [Library.Init] if the library lacks MPI_THREAD_MULTIPLE.
var ErrThreads = errors.New("library does not support MPI_THREAD_MULTIPLE")

// Load loads the first library that is installed, in the order of flavors, and does not
// initialize it. A path or soname in the environment variable [LibraryKey] replaces this list.
// If no library can be loaded, it returns an error that wraps dl.ErrNotLoaded and gives the
// reason for each candidate. It also returns an error if the loaded library is not a usable MPI
// library.
func Load(flavors ...Flavor) (*Library, error) {
	var names []string
	of := map[string]Flavor{}
	for _, f := range flavors {
		for _, name := range sonames[f] {
			names, of[name] = append(names, name), f
		}
	}
	if named := os.Getenv(LibraryKey); named != "" {
		names = []string{named}
	}
	if os.Getenv("UCX_HANDLE_ERRORS") == "" {
		os.Setenv("UCX_HANDLE_ERRORS", "none") // or UCX would replace Go's signal handlers
	}
	lib, err := dl.Open(names...)
	if err != nil {
		return nil, err
	}
	l := &Library{lib: lib, flavor: of[lib.Name()]}
	if l.flavor == AnyFlavor {
		l.flavor = l.guessFlavor()
	}
	for i, name := range symbols {
		if l.entries[i], err = lib.Symbol(name); err != nil {
			return nil, fmt.Errorf("%s is not an MPI library: %w", lib.Name(), err)
		}
	}
	if err := l.loadConstants(); err != nil {
		return nil, fmt.Errorf("%s is not a usable %v library: %w", lib.Name(), l.flavor, err)
	}
	return l, l.readVersion()
}

// LibraryKey is the environment variable that names the library to load.
const LibraryKey = "SHOAL_MPI_LIBRARY"

// readVersion sets l.version to the first line of the library's version text. MPI permits this
// call before MPI_Init.
func (l *Library) readVersion() error {
	text, n := make([]byte, 8192), new(int32)
	err := l.callFunc(libraryVersion, uintptr(dataPointer(text)), uintptr(unsafe.Pointer(n)))
	line, _, _ := strings.Cut(string(text[:*n]), "\n")
	l.version = strings.TrimRight(line, "\x00 ")
	return err
}

// Version returns the library's name and version, such as "Open MPI 4.1.4".
func (l *Library) Version() string {
	name := l.flavor.String()
	if l.flavor == ABI && l.Maker() != AnyFlavor {
		name = l.Maker().String()
	}
	words := strings.FieldsFunc(l.version, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	for _, w := range words {
		if v := strings.TrimPrefix(w, "v"); v != "" && v[0] >= '0' && v[0] <= '9' && strings.Contains(v, ".") {
			name += " " + v
			break
		}
	}
	if l.flavor == ABI && l.Maker() != AnyFlavor {
		name += " by the MPI 5 ABI"
	}
	return name
}

// Maker returns the implementation regardless of its ABI: [OpenMPI] or [MPICH]. It returns
// [AnyFlavor] for another implementation, such as a derivative of one of them.
func (l *Library) Maker() Flavor {
	for _, f := range []Flavor{OpenMPI, MPICH} {
		if strings.HasPrefix(l.version, f.String()+" ") {
			return f
		}
	}
	return AnyFlavor
}

// Flavor returns the library's flavor.
func (l *Library) Flavor() Flavor { return l.flavor }

// Init joins the job that the launcher has started. It must be called once. It blocks until all
// ranks have called it. It returns an error that wraps [ErrThreads] if the library cannot be
// called by several threads.
func (l *Library) Init() error {
	l.hydra = findHydra(os.Getenv)
	level := new(int32)
	err := dl.Guard(func() error {
		return l.callFunc(initThread, 0, 0, uintptr(l.abi.multiple), uintptr(unsafe.Pointer(level)))
	})
	if err != nil {
		return err
	}
	if *level < l.abi.multiple {
		return fmt.Errorf("%w: %s provides thread level %d, want %d", ErrThreads, l.Version(), *level, l.abi.multiple)
	}
	return l.World().returnErrors()
}

// Finalize leaves the job. It blocks until all ranks have called it. The library must not be
// used afterwards. The error is an [*Error], or says that the launcher did not acknowledge the
// end.
func (l *Library) Finalize() error {
	if err := l.callFunc(finalize); err != nil {
		return err
	}
	return l.hydra.finalize()
}

// callFunc calls a function of the library and returns an [*Error] if its result is not
// MPI_SUCCESS. Pointers must be converted to uintptr in the argument list, so that the memory stays
// in place.
//
//go:uintptrescapes
func (l *Library) callFunc(e entry, args ...uintptr) error {
	code := int32(dl.Call(l.entries[e], args...))
	if code == 0 {
		return nil
	}
	return &Error{Call: symbols[e], Code: int(code), Text: l.errorText(code)}
}

// errorText returns the library's description of an error code.
func (l *Library) errorText(code int32) string {
	text, n := make([]byte, 1024), new(int32)
	if dl.Call(l.entries[errorString], uintptr(code), uintptr(dataPointer(text)), uintptr(unsafe.Pointer(n))) != 0 {
		return "unknown error"
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}

// An Error is an error code returned by a function of the library.
type Error struct {
	Call string
	Code int
	Text string
}

// Error returns the function, the library's description and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code) }

// dataPointer returns the address of b's first element. The caller must convert it to uintptr in
// the argument list of callFunc, so that b stays in place.
func dataPointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
