/** The names by which agents may reach the server: those that its certificate for them holds. */

/** `more`: what the operator adds with `--agent-names`. Each name once. */
export function namesForAgents(domain: string, more: readonly string[]): string[] {
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, `connect.${domain}`, ...more])]
}
