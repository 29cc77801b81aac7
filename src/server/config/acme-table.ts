/** The settings for certificates that the server gets by itself (ACME, RFC 8555). */
import * as parse from './parse-value.ts'
import { setting } from './setting-kinds.ts'

export const acmeTable = {
  acmeDirectory: setting('acme-directory <name|url>', parse.acmeDirectory, {
    default: '',
    defaultNote: 'off',
    about:
      'certificate authority for the names you serve: `letsencrypt`, `letsencrypt-staging`, `zerossl`, or the URL of an ACME directory; by setting it you agree to its terms',
    example: 'letsencrypt',
  }),
  acmeEmail: setting('acme-email <address>', parse.email, {
    default: '',
    about: 'email address at which that authority may contact you',
    example: 'ops@example.com',
  }),
  acmeCa: setting('acme-ca <path>', parse.path, {
    default: null,
    defaultNote: 'what every browser trusts',
    about: 'PEM file of the certificates to trust when connecting to that authority, for a private one',
    example: '/etc/postern/acme-root.pem',
  }),
  acmeEabKeyId: setting('acme-eab-key-id <id>', parse.keyId, {
    default: '',
    about: 'id of the key for external account binding (EAB), if that authority requires it',
    example: 'kid-1',
  }),
  acmeOrdersPerHour: setting('acme-orders-per-hour <number>', parse.countBetween(1, 100_000), {
    default: '60',
    about: 'most certificates that all nodes together order per hour; further names wait for their turn',
    example: '300',
  }),
  acmeEndpointsPerWeek: setting('acme-endpoints-per-week <number>', parse.countBetween(0, 100_000), {
    default: '20',
    about:
      'most names of agents below `domain` that get a first certificate of their own per week, where no DNS records can be set and a wildcard is therefore not possible',
    example: '100',
  }),
  acmeDnsCommand: setting('acme-dns-command <path>', parse.path, {
    default: null,
    defaultNote: 'none',
    about:
      'executable that sets the DNS records that prove a name, for wildcards and for servers that the authority cannot reach; called with the name of the record and its value, and with `POSTERN_ACME_ACTION` set to `present` or `cleanup`',
    example: '/etc/postern/dns-record',
  }),
  acmeDnsServer: setting('acme-dns-server <host[:port]>', parse.dnsServer, {
    default: null,
    defaultNote: 'none',
    about:
      'name server that accepts updates (RFC 2136), signed with `acme-dns-key`, of the DNS records that prove a name; if it is set, `acme-dns-command` is not called',
    example: 'ns1.example.com',
  }),
  acmeEabKey: setting('acme-eab-key <key>', parse.macKey, {
    default: null,
    defaultNote: 'none',
    about: 'the key of `acme-eab-key-id`, in base64url as the authority shows it',
    example: 'c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA',
    envOnly: true,
  }),
  acmeDnsKey: setting('acme-dns-key <key>', parse.dnsKey, {
    default: null,
    defaultNote: 'none',
    about:
      'the key for `acme-dns-server`: `algorithm:name:secret`, with `hmac-sha256`, `hmac-sha384` or `hmac-sha512`, and the secret in base64',
    example: 'hmac-sha256:postern:c2VjcmV0IG9mIHRoZSBuYW1lIHNlcnZlcg==',
    envOnly: true,
  }),
} as const
