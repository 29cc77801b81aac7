/** The settings for certificates that others look after, and for where they are shown. */
import * as parse from './parse.ts'
import { setting } from './setting.ts'

/** The choices for what agents are shown. */
const agentCertificates = ['own', 'public'] as const

export const certificateTable = {
  certificateDir: setting({
    name: 'certificate-dir',
    takes: 'folder',
    parse: parse.path,
    default: null,
    defaultNote: 'none',
    about:
      'folder of certificates and their keys, such as those of certbot or cert-manager, which are served for the names in them and read again when they change',
    example: '/etc/letsencrypt/live',
  }),
  apiTls: setting({
    name: 'api-tls',
    takes: 'on|off',
    parse: parse.onOff,
    default: 'off',
    bare: 'on',
    about:
      "`on` or `off`: whether the API listener speaks TLS, with the certificate of the name in `--api-url`, or else with one of the server's own authority",
    example: 'on',
  }),
  agentCertificate: setting({
    name: 'agent-certificate',
    takes: 'own|public',
    parse: parse.oneOf(agentCertificates),
    default: 'own',
    about:
      "which certificate agents are shown: `own` is always one of the server's authority; `public` is that of the name they ask for, uploaded, from a file or issued, which agents that trust `ca.pem` alone do not accept",
    example: 'public',
  }),
  verifyDomains: setting({
    name: 'verify-domains',
    takes: 'on|off',
    parse: parse.onOff,
    default: 'off',
    bare: 'on',
    about:
      '`on` or `off`: whether members and agents may have a name outside of `--domain` only when a record in the DNS proves that it is theirs',
    example: 'on',
  }),
  dnsServers: setting({
    name: 'dns-servers',
    takes: 'addresses',
    parse: parse.dnsServers,
    default: '',
    defaultNote: 'those of this machine',
    about:
      'DNS servers that are asked for records that prove names, as `address` or `address:port`, separated by commas',
    example: '1.1.1.1,[2606:4700:4700::1111]:53',
  }),
} as const
