package oidc

// ReadKeys reads a JWKS, and says how many of its keys can be used.
func ReadKeys(body []byte) (int, error) {
	keys, err := readKeys(body)
	return len(keys), err
}
