package subcommand

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// completion prints a shell script that enables completion of the program's arguments. The script
// calls the program itself with GO_FLAGS_COMPLETION set; package flags then prints the candidates.
type completion struct {
	Args struct {
		Shell string `positional-arg-name:"shell" required:"yes" description:"bash, zsh or fish."`
	} `positional-args:"yes"`

	program string
}

// scripts maps shells to completion scripts. PROGRAM stands for the program's name.
var scripts = map[string]string{
	"bash": bashScript,
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\n" + bashScript,
	"fish": `function __complete_PROGRAM
    set -l words (commandline -opc) (commandline -ct)
    env GO_FLAGS_COMPLETION=1 $words
end
complete -c PROGRAM -a '(__complete_PROGRAM)'
`,
}

const bashScript = `_complete_PROGRAM() {
    local IFS=$'\n'
    COMPREPLY=($(GO_FLAGS_COMPLETION=1 "${COMP_WORDS[0]}" "${COMP_WORDS[@]:1:$COMP_CWORD}"))
}
complete -o default -F _complete_PROGRAM PROGRAM
`

// Run prints the script on standard output. For an unknown shell it exits the program with
// status 2.
func (c *completion) Run(context.Context) error {
	script, ok := scripts[c.Args.Shell]
	if !ok {
		Misused(c.program, fmt.Errorf("completion: got shell %q, want bash, zsh or fish", c.Args.Shell))
	}
	_, err := strings.NewReplacer("PROGRAM", c.program).WriteString(os.Stdout, script)
	return err
}
