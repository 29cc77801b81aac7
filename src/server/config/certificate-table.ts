/** The settings for certificates that others manage, and for where certificates are used. */
import * as parse from './parse-value.ts'
import { setting } from './setting-kinds.ts'

/** The choices for what agents are shown. */
const agentCertificates = ['own', 'public'] as const

export const certificateTable = {
  certificateDir: setting('certificate-dir <folder>', parse.path, {
    default: null,
    defaultNote: 'none',
    about:
      'folder of certificates and their keys, such as those of certbot or cert-manager; each is served for the names in it, and read again when it changes',
    example: '/etc/letsencrypt/live',
  }),
  apiTls: setting('api-tls [on|off]', parse.onOff, {
    default: 'off',
    about:
      "`on` or `off`: whether the API listener speaks TLS, with the certificate for the name in `--api-url`, or else with one of the server's own authority",
    example: 'on',
  }),
  agentCertificate: setting('agent-certificate <own|public>', parse.oneOf(agentCertificates), {
    default: 'own',
    about:
      "which certificate agents are shown: `own` is always one of the server's own authority; `public` is that of the name they ask for (uploaded, from a file or issued), which agents that trust only `ca.pem` do not accept",
    example: 'public',
  }),
  verifyDomains: setting('verify-domains [on|off]', parse.onOff, {
    default: 'off',
    about:
      '`on` or `off`: whether members and agents must prove with a DNS record that they own a name outside of `--domain`',
    example: 'on',
  }),
  dnsServers: setting('dns-servers <addresses>', parse.dnsServers, {
    default: '',
    defaultNote: 'those of this machine',
    about: 'DNS servers to ask for the records that prove names, as `address` or `address:port`, separated by commas',
    example: '1.1.1.1,[2606:4700:4700::1111]:53',
  }),
} as const
