/** The header that the last rule sets: a response with it has passed all rules. */
export const LAST_HEADER = 'cache-control'

/** Ten typical rules in front of a service: each reads the request or the response, and none of them ends it. */
export const tenRules = {
  inbound: [
    {
      name: 'the office only',
      expressions: ["req.url.path.startsWith('/admin')", "!inCidrRange(conn.client_ip, '10.0.0.0/8')"],
      actions: [{ type: 'deny', config: { status_code: 404 } }],
    },
    {
      name: 'methods',
      expressions: ["!(req.method in ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'])"],
      actions: [{ type: 'deny', config: { status_code: 405 } }],
    },
    {
      name: 'bots',
      expressions: ["req.user_agent.contains('bot') || req.user_agent.contains('crawler')"],
      actions: [{ type: 'deny' }],
    },
    {
      name: 'addresses',
      actions: [{ type: 'restrict-ips', config: { allow: ['0.0.0.0/0', '::/0'], deny: ['203.0.113.0/24'] } }],
    },
    {
      name: 'old addresses',
      expressions: ["req.url.path.matches('^/v[01]/')"],
      actions: [{ type: 'redirect', config: { to: 'https://docs.example.com/' } }],
    },
    {
      name: 'keys',
      expressions: ["req.url.path.startsWith('/api/') && !hasReqHeader('x-api-key')"],
      actions: [{ type: 'deny', config: { status_code: 401 } }],
    },
    {
      name: 'large bodies',
      expressions: ['req.content_length > 10485760'],
      actions: [{ type: 'deny', config: { status_code: 413 } }],
    },
    {
      name: 'where it comes from',
      actions: [{ type: 'add-headers', config: { headers: { 'x-visitor': '${conn.client_ip}', 'x-edge': 'a' } } }],
    },
  ],
  outbound: [
    { name: 'what runs there', actions: [{ type: 'remove-headers', config: { headers: ['server', 'x-powered-by'] } }] },
    {
      name: 'caching',
      expressions: ['res.status_code == 200', "!('cache-control' in res.headers)"],
      actions: [{ type: 'add-headers', config: { headers: { [LAST_HEADER]: 'no-store' } } }],
    },
  ],
}
