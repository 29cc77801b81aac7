/** The reference of error codes, made from the one table of them. */
import { errors } from '../model/errors.ts'

export function errorReference(): string {
  const rows = Object.entries(errors)
    .sort(([a], [b]) => a.localeCompare(b, 'en'))
    .map(([code, { status, text }]) => `| \`ERR_${code}\` | ${status} | ${text} |`)
  return `# Errors

<!-- Made from src/model/errors.ts by \`npm run docs\`; change it there. -->

Every error of the management API has the same body, whatever went wrong:

\`\`\`json
{
  "error_code": "ERR_HOSTPORT_IN_USE",
  "status_code": 409,
  "msg": "\`hostports\`: \`app.example.com:443\` belongs to another edge; remove it there first",
  "details": { "operation_id": "op_…" }
}
\`\`\`

\`error_code\` is stable: scripts may rely on it. \`msg\` says what is wrong with which field and what to do about it; it is
written for people and may improve. \`details\` holds strings only. The operation id is also in the response header
\`Service-Operation-Id\` and in the server's log line of the call.

| code | status | usual sentence |
|---|---|---|
${rows.join('\n')}
`
}
