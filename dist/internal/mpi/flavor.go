package mpi

import (
	"fmt"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// A Flavor is a family of MPI libraries with a common ABI. AnyFlavor means that the family is not
// known.
type Flavor int

// The flavors.
const (
	AnyFlavor Flavor = iota
	OpenMPI
	MPICH
	ABI // the standard ABI of MPI 5
)

// String returns the name of the flavor.
func (f Flavor) String() string { return [...]string{"MPI", "Open MPI", "MPICH", "MPI 5 ABI"}[f] }

// sonames lists the sonames of each flavor in the order of preference. A library with
// the MPI 5 ABI works with a launcher only if both come from the same implementation. Its soname
// ends with the version of the ABI; some builds of MPICH end with 0.
var sonames = map[Flavor][]string{
	OpenMPI:   {"libmpi.so.40", "libmpi.so.80"},
	MPICH:     {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12"},
	ABI:       {"libmpi_abi.so.1", "libmpi_abi.so.0"},
	AnyFlavor: nil,
}

// The indices of the datatypes and operations in an [abi]; as in package collective.
const (
	kindUint8 = iota
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindFloat32
	kindFloat64
	kindByte
	numKinds
)

const (
	opSum = iota
	opMax
	opMin
	opProd
	opBAnd
	opBOr
	opBXor
	numOps
)

// An abi contains the constants that differ between flavors.
type abi struct {
	world, errorsReturn uintptr
	kinds               [numKinds]uintptr
	ops                 [numOps]uintptr

	inPlace, statusIgnore uintptr
	anySource             int32
	multiple              int32 // MPI_THREAD_MULTIPLE
	sourceAt              int   // offset of MPI_SOURCE in a status
}

// mpichABI is the ABI that MPICH and compatible libraries of other vendors have kept stable since
// 2014. Handles are 32-bit integers.
var mpichABI = abi{
	world: 0x44000000, errorsReturn: 0x54000001,
	kinds: [numKinds]uintptr{kindUint8: 0x4c000102, kindInt8: 0x4c000118, kindInt16: 0x4c000203,
		kindInt32: 0x4c000405, kindInt64: 0x4c000809, kindFloat32: 0x4c00040a, kindFloat64: 0x4c00080b,
		kindByte: 0x4c00010d},
	ops: [numOps]uintptr{opSum: 0x58000003, opMax: 0x58000001, opMin: 0x58000002, opProd: 0x58000004,
		opBAnd: 0x58000006, opBOr: 0x58000008, opBXor: 0x5800000a},
	inPlace: ^uintptr(0), statusIgnore: 1, anySource: -2, multiple: 3, sourceAt: 8,
}

// standardABI is version 1 of the ABI of MPI 5.0. The constants are from mpi.h in the
// standard's appendix, which the MPI Forum also publishes in github.com/mpi-forum/mpi-abi-stubs.
var standardABI = abi{
	world: 0x101, errorsReturn: 0x143,
	kinds: [numKinds]uintptr{kindUint8: 0x241, kindInt8: 0x240, kindInt16: 0x248, kindInt32: 0x250,
		kindInt64: 0x258, kindFloat32: 0x210, kindFloat64: 0x214, kindByte: 0x247},
	ops: [numOps]uintptr{opSum: 0x21, opMax: 0x23, opMin: 0x22, opProd: 0x24, opBAnd: 0x28, opBOr: 0x29,
		opBXor: 0x2a},
	inPlace: 1, statusIgnore: 0, anySource: -1, multiple: 4096, sourceAt: 0,
}

// openMPIABI lacks the handles, because Open MPI's handles are addresses of the symbols below.
var openMPIABI = abi{inPlace: 1, statusIgnore: 0, anySource: -1, multiple: 3, sourceAt: 0}

var (
	openMPIKinds = [numKinds]string{kindUint8: "unsigned_char", kindInt8: "signed_char", kindInt16: "short",
		kindInt32: "int", kindInt64: "long_long_int", kindFloat32: "float", kindFloat64: "double",
		kindByte: "byte"}
	openMPIOps = [numOps]string{opSum: "sum", opMax: "max", opMin: "min", opProd: "prod", opBAnd: "band",
		opBOr: "bor", opBXor: "bxor"}
)

// undefined is MPI_UNDEFINED, the color of ranks that get no communicator from a split.
const undefined = -32766

// statusSize is an upper bound of the size of a status in all flavors.
const statusSize = 64

// guessFlavor determines the flavor of a library that the user has named: [ABI], [OpenMPI], or
// [MPICH] for all others. It must check for the standard ABI first, because Open MPI with that
// ABI also exports its own symbols.
func (l *Library) guessFlavor() Flavor {
	_, err := l.lib.Symbol("ompi_mpi_comm_world")
	switch {
	case l.standardVersion() > 0:
		return ABI
	case err == nil:
		return OpenMPI
	}
	return MPICH
}

// standardVersion returns the major version of the MPI 5 ABI that the library implements. It
// returns 0 if the library lacks the function that tells it, and -1 for MPICH 5 with its own
// ABI. It may be called before Init.
func (l *Library) standardVersion() int32 {
	f, err := l.lib.Symbol("MPI_Abi_get_version")
	if err != nil {
		return 0
	}
	v := new([2]int32)
	if dl.Call(f, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1]))) != 0 {
		return 0
	}
	return v[0]
}

// loadConstants sets the abi of l for its flavor. It returns an error if a constant is missing,
// or if the library has a newer version of the MPI 5 ABI.
func (l *Library) loadConstants() error {
	switch {
	case l.flavor == ABI:
		if v := l.standardVersion(); v > 1 {
			return fmt.Errorf("its ABI version is %d, want 1: build the program with a newer Shoal", v)
		}
		l.abi = standardABI
		return nil
	case l.flavor == MPICH:
		l.abi = mpichABI
		return nil
	}
	l.abi = openMPIABI
	find := func(to *uintptr, name string) error {
		p, err := l.lib.Symbol("ompi_mpi_" + name)
		*to = p
		return err
	}
	err := find(&l.abi.world, "comm_world")
	if err == nil {
		err = find(&l.abi.errorsReturn, "errors_return")
	}
	for i, name := range openMPIKinds {
		if err == nil {
			err = find(&l.abi.kinds[i], name)
		}
	}
	for i, name := range openMPIOps {
		if err == nil {
			err = find(&l.abi.ops[i], "op_"+name)
		}
	}
	return err
}
