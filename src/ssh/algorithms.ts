/**
 * The algorithms the gateway offers, by name; what is not listed is not spoken. No SHA-1, no CBC, no DSA, no compression.
 * The marker of strict key exchange, against packets that are left out of a handshake, is added by the library.
 */
export const algorithms = {
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
  ],
  serverHostKey: ['ssh-ed25519'],
  // Without chacha20-poly1305: clients prefer it, and in a process without native code it is the slowest by far.
  cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  compress: ['none'],
} as const
