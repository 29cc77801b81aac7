/** The cipher suites of our TLS listeners: only those with forward secrecy and authenticated encryption. */

/**
 * TLS 1.3. AES-128 first: as far as is known it is as secure as the longer key, and its SHA-256, which most processors
 * have in hardware, makes a handshake a tenth cheaper. Clients that offer ChaCha20 first have no AES in hardware; they
 * get ChaCha20 through `SSL_OP_PRIORITIZE_CHACHA`, which listeners set.
 */
const v13 = ['TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_256_GCM_SHA384']

/** TLS 1.2: AEAD, and ECDHE key exchange, so that a stolen certificate key does not decrypt recorded traffic. */
const v12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** TLS 1.0 and 1.1, which have no AEAD: ECDHE only. */
const older = ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA', 'ECDHE-RSA-AES256-SHA']

export const modernSuites = [...v13, ...v12].join(':')

/**
 * For listeners where TLS 1.0 or 1.1 is allowed: CBC suites come after all modern ones. OpenSSL by default refuses the
 * weak signatures of these versions, so its security level is lowered too.
 */
export const suitesWithOlder = [...v13, ...v12, ...older, '@SECLEVEL=0'].join(':')
