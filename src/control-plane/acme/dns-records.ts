/** Sets and removes the DNS records that prove a name (RFC 8555 §8.4). */

/** Both resolve when it is done, and reject otherwise; both can be repeated. */
export interface DnsRecords {
  present(record: string, value: string): Promise<void>
  cleanup(record: string, value: string): Promise<void>
}

/** The record that proves a name, or the wildcard above it. */
export function recordOf(name: string): string {
  return `_acme-challenge.${name.replace(/^\*\./, '')}`
}
