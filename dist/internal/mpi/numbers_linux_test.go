package mpi

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/test/standin"
)

// abiKey is the folder of a library with the ABI of MPI 5, its launcher and its header: scripts/mpi
// sets it.
const abiKey = "SHOAL_MPI_ABI"

// The numbers of both tables are those of the headers, by a C compiler.
func TestNumbers_AreThoseOfTheHeaders(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	for _, c := range []struct {
		name, header string
		abi          abi
	}{
		{"MPICH", firstFile("/usr/include/*/mpich/mpi.h", "/usr/include/mpich*/mpi.h"), mpichABI},
		{"MPI5ABI", firstFile(filepath.Join(os.Getenv(abiKey), "include/mpi_abi.h")), standardABI},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.header == "" {
				t.Skip("its header is not here: scripts/mpi installs it")
			}
			want := map[string]int64{
				"MPI_COMM_WORLD": int64(c.abi.world), "MPI_ERRORS_RETURN": int64(c.abi.errorsReturn),
				"MPI_IN_PLACE": int64(c.abi.inPlace), "MPI_STATUS_IGNORE": int64(c.abi.statusIgnore),
				"MPI_ANY_SOURCE": int64(c.abi.anySource), "MPI_THREAD_MULTIPLE": int64(c.abi.multiple),
				"MPI_UNDEFINED": undefined, "offsetof(MPI_Status, MPI_SOURCE)": int64(c.abi.sourceAt),
				"sizeof(MPI_Status) > 64": 0,
			}
			for name, k := range map[string]int{"UINT8_T": kindUint8, "INT8_T": kindInt8, "INT16_T": kindInt16,
				"INT32_T": kindInt32, "INT64_T": kindInt64, "FLOAT": kindFloat32, "DOUBLE": kindFloat64,
				"BYTE": kindByte} {
				if c.name == "MPICH" { // its numbers are those of the types of C
					name = map[string]string{"UINT8_T": "UNSIGNED_CHAR", "INT8_T": "SIGNED_CHAR", "INT16_T": "SHORT",
						"INT32_T": "INT", "INT64_T": "LONG_LONG", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
						"BYTE": "BYTE"}[name]
				}
				want["MPI_"+name] = int64(c.abi.kinds[k])
			}
			for name, op := range map[string]int{"SUM": opSum, "MAX": opMax, "MIN": opMin, "PROD": opProd,
				"BAND": opBAnd, "BOR": opBOr, "BXOR": opBXor} {
				want["MPI_"+name] = int64(c.abi.ops[op])
			}
			got := numbersOf(t, cc, c.header, want)
			for name, n := range want {
				if got[name] != n {
					t.Errorf("%s: %#x, and in %s it is %#x", name, n, c.header, got[name])
				}
			}
		})
	}
}

func firstFile(patterns ...string) string {
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// numbersOf returns what the names are in C.
func numbersOf(t *testing.T, cc, header string, names map[string]int64) map[string]int64 {
	t.Helper()
	source := fmt.Sprintf("#include <stdio.h>\n#include <stddef.h>\n#include %q\nint main(void) {\n", header)
	for name := range names {
		source += fmt.Sprintf("printf(\"%s\\t%%lld\\n\", (long long)(%s));\n", name, name)
	}
	file := filepath.Join(t.TempDir(), "numbers.c")
	if err := os.WriteFile(file, []byte(source+"return 0;\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSuffix(file, ".c")
	if out, err := exec.Command(cc, "-w", "-I", filepath.Dir(header), "-o", program, file).
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if got[name], err = strconv.ParseInt(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// loadKey has this binary load a library, and say what it is.
const loadKey = "SHOAL_TEST_MPI_LOAD"

func TestMain(m *testing.M) {
	if os.Getenv(loadKey) == "" {
		os.Exit(m.Run())
	}
	lib, err := Load(ABI)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v: %v, made by %v, found as %s\n", lib.Flavor(), lib.Version(), lib.Maker(),
		filepath.Base(lib.lib.Name()))
}

// A library with the ABI of MPI 5 is known by what it says, whatever its name, and found by both
// sonames.
func TestLoad_KnowsTheStandardABI(t *testing.T) {
	const text = "Open MPI v6.0.0, package: a stand-in"
	for _, c := range []struct {
		name    string
		version int
		extern  string // a symbol besides
		named   bool   // by LibraryKey
		want    string
	}{
		{"libmpi_abi.so.1", 1, "", false, "MPI 5 ABI: Open MPI 6.0.0 by the MPI 5 ABI, made by Open MPI, found as " +
			"libmpi_abi.so.1"},
		{"libmpi_abi.so.0", 1, "", false, "found as libmpi_abi.so.0"},
		{"libmpi_abi.so.0", 1, "ompi_mpi_comm_world", true, "MPI 5 ABI: Open MPI 6.0.0 by the MPI 5 ABI"},
		{"libanything.so", 1, "ompi_mpi_comm_world", true, "MPI 5 ABI: Open MPI 6.0.0 by the MPI 5 ABI"},
		{"libmpi.so.12", -1, "", true, "MPICH: MPICH 6.0.0"}, // as MPICH 5 says of its own
		{"libmpi_abi.so.1", 2, "", false, "its ABI version is 2, want 1"},
	} {
		source := fmt.Sprintf("#include <string.h>\nint %s;\nint MPI_Abi_get_version(int *a, int *b) { *a = %d; "+
			"*b = 0; return 0; }\n"+
			"int MPI_Get_library_version(char *s, int *n) { strcpy(s, %q); *n = strlen(s); return 0; }\n",
			cmp.Or(c.extern, "nothing_else"), c.version, text)
		for e, name := range symbols {
			if entry(e) != libraryVersion {
				source += "int " + name + "() { return 0; }\n"
			}
		}
		dir := t.TempDir()
		file, so := filepath.Join(dir, "standin.c"), filepath.Join(dir, c.name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(standin.Compile(t, file), so); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), loadKey+"=1", "LD_LIBRARY_PATH="+dir)
		if c.named {
			child.Env = append(child.Env, LibraryKey+"="+so)
		}
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s of version %d: %v\n%s, want %q", c.name, c.version, err, out, c.want)
		}
	}
}
