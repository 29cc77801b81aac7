/** `traffic_policy`: how later clients of ngrok read the value that the contract calls `policy`. */

/** The policy of an edge or route, as it is shown, in the later spelling; null where there is none. */
export function shownPolicy(policy: unknown): { enabled: unknown; value: string } | null {
  if (typeof policy !== 'object' || policy === null) return null
  const { enabled, ...rules } = policy as Readonly<Record<string, unknown>>
  const given = Object.entries(rules).filter(([, value]) => value !== null)
  return { enabled, value: JSON.stringify(Object.fromEntries(given)) }
}
