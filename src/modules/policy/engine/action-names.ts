/** The names of all actions: the eleven of mid 2024, and the later ones that we have. */

export const actionNames = [
  'add-headers',
  'basic-auth',
  'circuit-breaker',
  'close-connection',
  'compress-response',
  'custom-response',
  'deny',
  'http-request',
  'jwt-validation',
  'log',
  'oauth',
  'openid-connect',
  'rate-limit',
  'redirect',
  'remove-headers',
  'restrict-ips',
  'set-vars',
  'url-rewrite',
  'verify-webhook',
] as const

export type ActionName = (typeof actionNames)[number]

export function isActionName(name: string): name is ActionName {
  return (actionNames as readonly string[]).includes(name)
}
