/** Which cipher suites our TLS listeners take: forward secrecy and authenticated encryption, and no others. */

/** Of TLS 1.3, the longest keys first. */
const v13 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256']

/** Of TLS 1.2: a key exchange by ECDHE, so that a stolen certificate key opens no old recordings, and AEAD. */
const v12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** Of TLS 1.0 and 1.1, which know no AEAD; ECDHE still. */
const older = ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA', 'ECDHE-RSA-AES256-SHA']

export const modernSuites = [...v13, ...v12].join(':')

/**
 * For a listener on which somebody allowed TLS 1.0 or 1.1: CBC suites come after all modern ones. The signatures of these
 * versions are below what OpenSSL allows by default, so its security level is lowered too.
 */
export const suitesWithOlder = [...v13, ...v12, ...older, '@SECLEVEL=0'].join(':')

/** Modern suites with one of TLS 1.3 before all others. */
export function modernSuitesFrom(first: string): string {
  return [first, ...[...v13, ...v12].filter((suite) => suite !== first)].join(':')
}
