// Ci runs the steps of .ci/steps that the commit at HEAD selects, side by side where they allow it,
// and prints a table of them with seconds. It imports the standard library only, so that a fresh
// machine has compiled it within seconds.
//
//	ci                run the selected steps; CI_ALL=1 selects every step
//	ci list           print the selected steps, and the reason for each, and run nothing
//	ci mark COMMIT    prepare HEAD for landing after COMMIT, the previous landing
//	ci race SET       print the packages of one set for the race detector: always, 1, 2 or 3
package main
