/** The senders whose webhooks can be verified: any other is refused when it is saved. */
import { webhookSchemes } from './webhook_verification/schemes.ts'

export const webhookProviders: string[] = Object.keys(webhookSchemes)
