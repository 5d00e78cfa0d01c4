package nats_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An identity is an operator, an account or a user.
type identity struct {
	pair   nkeys.KeyPair
	public string
}

func newIdentity(t *testing.T, create func() (nkeys.KeyPair, error)) identity {
	t.Helper()
	pair, err := create()
	testutil.NoError(t, err)
	public, err := pair.PublicKey()
	testutil.NoError(t, err)
	return identity{pair, public}
}

// account makes an account with so many bytes of room, by the operator's signature.
func (operator identity) account(t *testing.T, name string, room int64) (account identity, text string) {
	t.Helper()
	account = newIdentity(t, nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(account.public)
	claims.Name = name
	if room > 0 {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: room, DiskStorage: room,
			Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	}
	text, err := claims.Encode(operator.pair)
	testutil.NoError(t, err)
	return account, text
}

// user returns the file that nsc would write for a user of the account.
func (account identity) user(t *testing.T, lives time.Duration) (file string) {
	t.Helper()
	user := newIdentity(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(user.public)
	if lives != 0 {
		claims.Expires = time.Now().Add(lives).Unix()
	}
	text, err := claims.Encode(account.pair)
	testutil.NoError(t, err)
	seed, err := user.pair.Seed()
	testutil.NoError(t, err)
	creds, err := jwt.FormatUserConfig(text, seed)
	testutil.NoError(t, err)
	file = filepath.Join(t.TempDir(), "user.creds")
	testutil.NoError(t, os.WriteFile(file, creds, 0o600))
	return file
}

// Credentials files of an operator's accounts are how a broker that others run lets clients in.
func TestConnect_CredentialsOfAnOperator(t *testing.T) {
	t.Parallel() // it waits
	operator, stranger := newIdentity(t, nkeys.CreateOperator), newIdentity(t, nkeys.CreateOperator)
	system, textSystem := operator.account(t, "system", 0)
	claims := jwt.NewOperatorClaims(operator.public)
	claims.SystemAccount = system.public
	trusted, err := claims.Encode(operator.pair)
	testutil.NoError(t, err)
	a, textA := operator.account(t, "a", 4<<20)
	b, textB := operator.account(t, "b", 4<<20)
	none, textNone := operator.account(t, "none", 0)
	other, textOther := stranger.account(t, "other", 4<<20)
	url := start(t, broker.Options{Operator: trusted, Accounts: []string{textSystem, textA, textB, textNone}}).URL()

	_, err = broker.Start(broker.Options{Dir: t.TempDir(), Operator: trusted, Accounts: []string{textOther}})
	testutil.ErrorContains(t, err, "is not signed by")
	_, err = broker.Start(broker.Options{Dir: t.TempDir(), Operator: trusted, Accounts: []string{textA}})
	testutil.ErrorContains(t, err, "the operator's system account")
	_, err = broker.Start(broker.Options{Dir: t.TempDir(), Operator: "no JWT"})
	testutil.ErrorContains(t, err, "operator JWT")

	refused(t, url, nats.Options{}, nats.ErrCredentials, "credentials file")
	refused(t, url, nats.Options{User: "u", Password: "p"}, nats.ErrCredentials, "credentials file")
	refused(t, url, nats.Options{CredsFile: other.user(t, 0)}, nats.ErrCredentials, "credentials file")
	refused(t, url, nats.Options{CredsFile: a.user(t, -time.Minute)}, nats.ErrCredentials, "credentials file")
	refused(t, url, nats.Options{CredsFile: none.user(t, 0)}, nats.ErrBroker, "allow it for this account")
	empty := filepath.Join(t.TempDir(), "empty.creds")
	testutil.NoError(t, os.WriteFile(empty, nil, 0o600))
	refused(t, url, nats.Options{CredsFile: empty}, nats.ErrCredentials, "file")

	ctx := testutil.Context(t)
	of := func(account identity) *nats.Queue[[]byte] {
		c, err := nats.Connect(ctx, url, nats.Options{CredsFile: account.user(t, 0)})
		testutil.NoError(t, err)
		t.Cleanup(func() { testutil.NoError(t, c.Close()) })
		return open[[]byte](t, c, "same", nats.QueueOptions{})
	}
	first, second := of(a), of(b)
	testutil.NoError(t, first.Put(ctx, []byte{1}))
	testutil.NoError(t, second.Put(ctx, []byte{2}))
	for i, q := range []*nats.Queue[[]byte]{first, second} {
		if v, err := q.Get(ctx); err != nil || v[0] != byte(1+i) {
			t.Errorf("%v, %v from the queue of account %d", v, err, 1+i)
		}
	}
	for n := 0; err == nil || n == 0; n++ {
		if err = first.Put(ctx, make([]byte, 1<<20)); n > 8 {
			t.Fatal("an account has more room than its JWT says")
		}
	}
	testutil.ErrorIs(t, err, nats.ErrStorage)
	testutil.ErrorContains(t, err, "free space")
	testutil.NoError(t, second.Put(ctx, []byte{3}))

	// A user whose time is over is cut off, and is told why.
	c, err := nats.Connect(ctx, url, nats.Options{CredsFile: a.user(t, 6*time.Second)})
	testutil.NoError(t, err)
	defer c.Close()
	q := open[[]byte](t, c, "short", nats.QueueOptions{})
	testutil.Eventually(t, func() bool {
		err = q.Put(ctx, []byte{1})
		return err != nil
	}, "the user does not expire")
	testutil.ErrorIs(t, err, nats.ErrCredentials)
	testutil.ErrorContains(t, err, c.Host(), "credentials file")
}
