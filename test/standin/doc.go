// Package standin compiles fake C libraries for tests of bindings.
//
//	so := standin.Compile(t, "testdata/standin.c")
//	lib, err := dl.Open(so)
//
// A stand-in repeats the types of the library's header, so that the header need not be installed.
// With the flags of [Vendor] it includes the real header instead. The header must then declare each
// function in the same way, so a stand-in with a wrong type does not compile.
package standin
