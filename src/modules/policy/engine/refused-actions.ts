/** Actions of the vendor that we do not have, with what to use instead. */

/** Each reason follows the name of the action. */
export const refusedActions: Readonly<Record<string, string>> = {
  'forward-internal':
    'is not supported, since there are no internal endpoints here: give the edge or route a `backend` that leads to the service, and paths that go elsewhere a route of their own',
  'terminate-tls':
    'is not supported as a rule: set the module `tls_termination` of a TLS edge, and `mutual_tls` for client certificates',
}

export function refusalOf(type: string): string | undefined {
  return Object.hasOwn(refusedActions, type) ? refusedActions[type] : undefined
}
