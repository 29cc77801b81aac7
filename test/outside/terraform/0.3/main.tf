# Every resource of provider 0.3 that Postern serves, as its users write them. The runner applies it twice, with other
# words the second time, and expects an empty plan after each.

terraform {
  required_providers {
    ngrok = { source = "ngrok/ngrok" }
  }
}

# The address and the key come from NGROK_API_BASE_URL and NGROK_API_KEY.
provider "ngrok" {}

variable "words" { type = string }
variable "active" { type = bool }
variable "ssh_public_key" { type = string }
variable "ca_pem" { type = string }
variable "certificate_pem" { type = string }
variable "private_key_pem" {
  type      = string
  sensitive = true
}

resource "ngrok_api_key" "this" {
  description = var.words
  metadata    = jsonencode({ words = var.words })
}

# The provider never sends `active = false`, so a bot can only be made inactive by other means.
resource "ngrok_bot_user" "this" {
  name   = "bot ${var.words}"
  active = true
}

# These two would be replaced in every plan: the provider reads back an owner that was not configured.
resource "ngrok_credential" "this" {
  description = var.words
  metadata    = "credential"
  acl         = ["bind:*.example.com", "bind:team=${var.words}"]
  lifecycle { ignore_changes = [owner_id] }
}

resource "ngrok_ssh_credential" "this" {
  description = var.words
  acl         = ["bind:ssh.example.com"]
  public_key  = var.ssh_public_key
  lifecycle { ignore_changes = [owner_id] }
}

resource "ngrok_credential" "of_bot" {
  description = var.words
  owner_id    = ngrok_bot_user.this.id
}

resource "ngrok_tunnel_group_backend" "this" {
  description = var.words
  labels      = { app = "shop", words = var.words }
}

resource "ngrok_http_response_backend" "this" {
  description = var.words
  body        = "Back soon: ${var.words}."
  headers     = { Content-Type = "text/plain", x-words = var.words }
  status_code = 503
}

resource "ngrok_http_response_backend" "bare" {
  body = var.words
}

resource "ngrok_failover_backend" "this" {
  description = var.words
  backends    = [ngrok_tunnel_group_backend.this.id, ngrok_http_response_backend.this.id]
}

# The action of a policy is obsolete and has no effect; the provider never reads it back and would replace the policy.
resource "ngrok_ip_policy" "this" {
  action      = "allow"
  description = var.words
  lifecycle { ignore_changes = [action] }
}

resource "ngrok_ip_policy" "plain" {
  description = var.words
  metadata    = "plain"
}

resource "ngrok_ip_policy_rule" "allow" {
  action       = "allow"
  cidr         = "0.0.0.0/0"
  description  = var.words
  ip_policy_id = ngrok_ip_policy.this.id
}

resource "ngrok_ip_policy_rule" "deny" {
  action       = "deny"
  cidr         = var.active ? "2001:db8::/32" : "2001:db8:1::/48"
  ip_policy_id = ngrok_ip_policy.plain.id
}

resource "ngrok_ip_restriction" "this" {
  description   = var.words
  type          = "agent"
  enforced      = false
  ip_policy_ids = [ngrok_ip_policy.this.id, ngrok_ip_policy.plain.id]
}

resource "ngrok_certificate_authority" "this" {
  description = var.words
  ca_pem      = var.ca_pem
}

resource "ngrok_tls_certificate" "this" {
  description     = var.words
  certificate_pem = var.certificate_pem
  private_key_pem = var.private_key_pem
}

resource "ngrok_reserved_addr" "this" {
  description               = var.words
  region                    = "us"
  endpoint_configuration_id = "ec_2sKQnYYg4N6uo0rX0JmXNpRGtdp"
}

resource "ngrok_reserved_addr" "bare" {}

resource "ngrok_reserved_domain" "this" {
  name                            = "shop.terraform.example.com"
  description                     = var.words
  certificate_id                  = ngrok_tls_certificate.this.id
  http_endpoint_configuration_id  = "ec_2sKQnYYg4N6uo0rX0JmXNpRGtdp"
  https_endpoint_configuration_id = "ec_2sKQnXJKXkAxBDFcIgvZQ1dQv1C"
}

resource "ngrok_reserved_domain" "managed" {
  domain      = "*.terraform.example.com"
  description = var.words
  certificate_management_policy {
    authority        = "letsencrypt"
    private_key_type = var.active ? "ecdsa" : "rsa"
  }
}

resource "ngrok_reserved_domain" "bare" {
  domain = "bare.terraform.example.com"
}

resource "ngrok_ssh_certificate_authority" "this" {
  description      = var.words
  private_key_type = "ecdsa"
  elliptic_curve   = "p384"
}

resource "ngrok_ssh_certificate_authority" "bare" {
  metadata = var.words
}

resource "ngrok_ssh_user_certificate" "this" {
  description                  = var.words
  ssh_certificate_authority_id = ngrok_ssh_certificate_authority.this.id
  public_key                   = var.ssh_public_key
  principals                   = ["ada", "root"]
  critical_options             = { source-address = "10.0.0.0/8" }
  extensions                   = { permit-pty = "" }
}

resource "ngrok_ssh_host_certificate" "this" {
  description                  = var.words
  ssh_certificate_authority_id = ngrok_ssh_certificate_authority.bare.id
  public_key                   = var.ssh_public_key
  principals                   = ["ssh.example.com"]
  valid_until                  = "2036-01-01T00:00:00Z"
}
