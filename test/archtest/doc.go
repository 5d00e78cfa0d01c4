// Package archtest checks that the house stands as ARCHITECTURE.md draws it: which package lives on
// which floor, who may import whom, and where the dangerous tools are kept.
//
//	problems, err := archtest.Check("github.com/shoal-mp/shoal", os.DirFS("../.."))
//
// Each problem is one sentence that names the file or package, the rule and the reason for it. The
// trap: a new package fails the check until floors.go gives it a floor. That is meant: say where it
// stands before others stand on it.
package archtest
