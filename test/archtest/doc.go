// Package archtest checks the architecture that ARCHITECTURE.md describes: the floor (layer) of
// each package, the permitted imports, and the packages that may use unsafe or call the kernel.
//
//	problems, err := archtest.Check("github.com/shoal-mp/shoal", os.DirFS("../.."))
//
// Each problem is a sentence with the file or package, the rule and its reason. A new package must
// be added to floors.go; the check fails until it has a floor.
package archtest
