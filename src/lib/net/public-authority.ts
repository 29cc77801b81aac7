/** The authority of a public URL: the host, with its port unless that is the usual one of the scheme. */

const usualPorts: Readonly<Record<string, number>> = { http: 80, https: 443, tls: 443 }

export function publicAuthority(scheme: string, host: string, port: number): string {
  return port === usualPorts[scheme] ? host : `${host}:${port}`
}
