// Package standin compiles what stands in for a library in C where a binding of it is tested.
//
//	so := standin.Compile(t, "testdata/standin.c")
//	lib, err := dl.Open(so)
//
// A stand-in writes out the types of the library's header, so that it needs none. With the flags of
// [Vendor] it takes them from the header itself, which then has to declare each of its functions as
// it does: so a stand-in that has a type wrong does not compile.
package standin
