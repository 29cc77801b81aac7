/** The algorithms that the gateway offers; it uses no others. */

/**
 * No SHA-1, no CBC, no DSA, no compression. The library adds the marker of strict key exchange, which protects against packets
 * being removed from a handshake.
 */
export const algorithms = {
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
    // No `mlkem768x25519-sha256`, though Node has ML-KEM: the library chooses among its own exchanges and takes no others.
  ],
  serverHostKey: ['ssh-ed25519'],
  // Without chacha20-poly1305: clients would prefer it, and without native code it is by far the slowest.
  cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  compress: ['none'],
} as const
