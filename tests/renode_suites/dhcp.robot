*** Settings ***
Documentation     A board that asks for its address, by its configuration in flash. Skipped for a
...               board without flash.
Resource          trebuchet.resource
Library           ${CURDIR}/dhcp_server.py
Test Setup        Board That Asks
Test Teardown     Test Teardown

*** Variables ***
# Magic cookie and message type (RFC 2132, 9.6), behind Ethernet, IP, UDP and BOOTP headers.
${AT}             278
${DISCOVER}       63825363350101
${REQUEST}        63825363350103

*** Keywords ***
Board That Asks
    ${script}=    Get Variable Value    ${SCRIPT_DHCP}    ${EMPTY}
    Skip If    not $script    this board has no flash
    Board    ${script}
    Create Network Interface Tester    sysbus.mac
    Start Emulation

Answer
    [Arguments]    ${message}    ${kind}    ${ip}
    ${sent}=    Wait For Outgoing Packet With Bytes At Index    ${message}    ${AT}    20    20
    ${answer}=    Dhcp Answer    ${sent}[Bytes]    ${kind}    ${ip}
    Send Frame    ${answer}

*** Test Cases ***
Takes What It Is Offered
    Answer    ${DISCOVER}    offer    192.0.2.77
    Answer    ${REQUEST}    ack    192.0.2.77
    Wait For Line On Uart    192.0.2.77    treatAsRegex=false
    Register Should Be    shell    ip    0xC000024D

Asks Again When It Is Refused
    Answer    ${DISCOVER}    offer    192.0.2.77
    Answer    ${REQUEST}    nak    0.0.0.0
    Answer    ${DISCOVER}    offer    192.0.2.78
    Answer    ${REQUEST}    ack    192.0.2.78
    Wait For Line On Uart    192.0.2.78    treatAsRegex=false
    Register Should Be    shell    ip    0xC000024E

Falls Back When Nobody Answers
    FOR    ${try}    IN RANGE    4
        Wait For Outgoing Packet With Bytes At Index    ${DISCOVER}    ${AT}    20    20
    END
    Wait For Line On Uart    ip: 192.0.2.2    treatAsRegex=false    timeout=60
    Register Should Be    shell    ip    0xC0000202
