/** The senders whose webhooks can be verified: any other is refused when it is saved. */

export const webhookProviders = ['clerk', 'github', 'gitlab', 'shopify', 'slack', 'stripe', 'svix', 'twilio', 'zoom']
