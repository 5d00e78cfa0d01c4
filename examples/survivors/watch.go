package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
)

func run(ctx context.Context) error {
	first, err := dist.NewGroup(len(dies))
	if err != nil {
		return err
	}
	teams, err := ipc.NewLatest(team{first, []int{0, 1, 2, 3}})
	first.Close() // teams holds it
	if err != nil {
		return err
	}
	defer teams.Close()
	var ranks []*shoal.Group // one for each rank, because a failure ends its whole group
	for r := range dies {
		g, err := train.Start(ctx, 1, teams, shoal.Options{FirstRank: r, Workers: len(dies)})
		if err != nil {
			return err
		}
		defer g.Close()
		ranks = append(ranks, g)
	}
	return watchRanks(ctx, teams, ranks)
}

// watchRanks waits for the ranks. After each death it publishes a new team of the survivors.
func watchRanks(ctx context.Context, teams *ipc.Latest[team], ranks []*shoal.Group) error {
	for {
		members, things := livingMembers(ranks)
		if len(members) == 0 {
			return nil
		}
		ended, err := ipc.Wait(ctx, things...)
		if err != nil {
			return err
		}
		died := false
		for _, i := range ended {
			r := members[i]
			if err := ranks[r].Wait(); err != nil {
				fmt.Println(err)
				died = true
			}
			ranks[r] = nil
		}
		if members, _ = livingMembers(ranks); died && len(members) > 0 {
			if err := publishTeam(ctx, teams, members); err != nil {
				return err
			}
		}
	}
}

func livingMembers(ranks []*shoal.Group) (members []int, things []ipc.Poller) {
	for r, g := range ranks {
		if g != nil {
			members, things = append(members, r), append(things, g)
		}
	}
	return members, things
}

func publishTeam(ctx context.Context, teams *ipc.Latest[team], members []int) error {
	g, err := dist.NewGroup(len(members))
	if err != nil {
		return err
	}
	defer g.Close() // teams holds it
	_, err = teams.Store(ctx, team{g, members})
	return err
}
