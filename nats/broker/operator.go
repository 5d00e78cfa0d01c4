package broker

import (
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// configureOperator sets the operator and its accounts in so. It returns an error if a JWT is
// invalid, if the operator has not signed an account, or if the system account is missing.
func (o Options) configureOperator(so *server.Options) error {
	operator, err := jwt.DecodeOperatorClaims(o.Operator)
	if err != nil {
		return fmt.Errorf("operator JWT: %w", err)
	}
	known := &server.MemAccResolver{}
	for _, text := range o.Accounts {
		account, err := jwt.DecodeAccountClaims(text)
		if err != nil {
			return fmt.Errorf("account JWT: %w", err)
		}
		if !operator.DidSign(account) {
			return fmt.Errorf("JWT of account %s is not signed by operator %s", account.Name, operator.Name)
		}
		if err := known.Store(account.Subject, text); err != nil {
			return err
		}
	}
	so.SystemAccount = operator.SystemAccount
	if _, err := known.Fetch(so.SystemAccount); err != nil { // the server would exit this process
		return fmt.Errorf("no JWT for the operator's system account %q: add it to Accounts", so.SystemAccount)
	}
	so.TrustedOperators, so.AccountResolver = []*jwt.OperatorClaims{operator}, known
	return nil
}

// An account is an account that may store values, with its limits.
type account struct {
	*server.Account
	claims *jwt.AccountClaims // nil for the global account, which has no limits
}

// storageAccounts returns the accounts of s that may store values: the global account if there
// is no operator.
func (o Options) storageAccounts(s *server.Server) (all []account, err error) {
	if o.Operator == "" {
		return []account{{s.GlobalAccount(), nil}}, nil
	}
	for _, text := range o.Accounts {
		claims, err := jwt.DecodeAccountClaims(text)
		if err != nil {
			return nil, err
		}
		a, err := s.LookupAccount(claims.Subject)
		if err != nil {
			return nil, err
		}
		if a.JetStreamEnabled() {
			all = append(all, account{a, claims})
		}
	}
	return all, nil
}

// refuseValues makes the server refuse new values of the account by setting its storage limits
// to 0.
func (a account) refuseValues() error {
	none := server.JetStreamAccountLimits{MaxMemory: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1,
		MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
	limits := map[string]server.JetStreamAccountLimits{"": none}
	if a.claims != nil && len(a.claims.Limits.JetStreamTieredLimits) > 0 {
		limits = make(map[string]server.JetStreamAccountLimits)
		for tier := range a.claims.Limits.JetStreamTieredLimits {
			limits[tier] = none
		}
	}
	return a.UpdateJetStreamLimits(limits)
}

// admitValues restores the account's own limits after refuseValues.
func (a account) admitValues(s *server.Server) error {
	if a.claims == nil {
		return a.UpdateJetStreamLimits(nil)
	}
	s.UpdateAccountClaims(a.Account, a.claims)
	return nil
}
