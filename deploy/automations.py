"""Create or update the automations of automations.yaml, by name, on the server at PREFECT_API_URL.

Notifications use the notification block of Prefect with the name `privsweep`, of any type. If
PRIVSWEEP_WEBHOOK is set, a block that posts to this address is created first.
"""

import os
from pathlib import Path
from typing import Any

import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore

FILE = Path(__file__).with_name("automations.yaml")
BLOCK = "privsweep"
NOTIFY = "notify"  # placeholder in the file for the id of the block


def deploy() -> None:
    """Create or update all automations, except notifications if the block is missing."""
    if address := os.environ.get("PRIVSWEEP_WEBHOOK"):
        _webhook(address).save(BLOCK, overwrite=True)
    with get_client(sync_client=True) as client:
        block = _block(client)
        for automation in yaml.safe_load(FILE.read_text())["automations"]:
            notifies = [a for a in automation["actions"] if a.get("block_document_id") == NOTIFY]
            if notifies and block is None:
                print(f"{automation['name']}: left out, since no notification block is named {BLOCK}")
                continue
            for action in notifies:
                action["block_document_id"] = block
            print(f"{automation['name']}: {_put(client, automation)}")


def _webhook(address: str) -> CustomWebhookNotificationBlock:
    """Return a block that posts JSON with `text`, the format of Slack, Mattermost and many others."""
    return CustomWebhookNotificationBlock(
        name="privsweep",
        url=address,
        method="POST",
        headers=None,
        cookies=None,
        json_data={"text": "{{subject}}\n{{body}}"},
    )


def _block(client: SyncPrefectClient) -> str | None:
    """Return the id of the notification block, or None if it does not exist."""
    answer = client.request(
        "POST",
        "/block_documents/filter",
        json={
            "block_documents": {"name": {"any_": [BLOCK]}},
            "block_schemas": {"block_capabilities": {"all_": ["notify"]}},
        },
    )
    found = answer.json()
    return str(found[0]["id"]) if found else None


def _put(client: SyncPrefectClient, automation: dict[str, Any]) -> str:
    """Create an automation, or update it if its name exists; return `created` or `updated`."""
    wanted = AutomationCore.model_validate(automation).model_dump(mode="json", exclude={"owner_resource"})
    same = client.request(
        "POST", "/automations/filter", json={"automations": {"name": {"any_": [automation["name"]]}}}
    ).json()
    if not same:
        client.request("POST", "/automations/", json=wanted)
        return "created"
    client.request("PUT", "/automations/{id}", path_params={"id": same[0]["id"]}, json=wanted)
    return "updated"


if __name__ == "__main__":
    deploy()
