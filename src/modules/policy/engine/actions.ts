/** The registry of actions: when each may run, its settings, and whether anything runs after it. */
import type { ActionType } from './action.ts'
import type { ActionName } from './action-names.ts'
import { addHeaders } from './actions/add-headers.ts'
import { basicAuth } from './actions/basic-auth.ts'
import { circuitBreaker } from './actions/circuit-breaker.ts'
import { closeConnection } from './actions/close-connection.ts'
import { compressResponse } from './actions/compress-response.ts'
import { customResponse } from './actions/custom-response.ts'
import { deny } from './actions/deny.ts'
import { httpRequest } from './actions/http-request.ts'
import { jwtValidation } from './actions/jwt-validation.ts'
import { log } from './actions/log.ts'
import { oauth } from './actions/oauth.ts'
import { openidConnect } from './actions/openid-connect.ts'
import { rateLimit } from './actions/rate-limit.ts'
import { redirect } from './actions/redirect.ts'
import { removeHeaders } from './actions/remove-headers.ts'
import { restrictIps } from './actions/restrict-ips.ts'
import { setVars } from './actions/set-vars.ts'
import { urlRewrite } from './actions/url-rewrite.ts'
import { verifyWebhook } from './actions/verify-webhook.ts'

export const actions: Readonly<Record<ActionName, ActionType>> = {
  'add-headers': addHeaders,
  'basic-auth': basicAuth,
  'circuit-breaker': circuitBreaker,
  'close-connection': closeConnection,
  'compress-response': compressResponse,
  'custom-response': customResponse,
  deny,
  'http-request': httpRequest,
  'jwt-validation': jwtValidation,
  log,
  oauth,
  'openid-connect': openidConnect,
  'rate-limit': rateLimit,
  redirect,
  'remove-headers': removeHeaders,
  'restrict-ips': restrictIps,
  'set-vars': setVars,
  'url-rewrite': urlRewrite,
  'verify-webhook': verifyWebhook,
}
